package helper

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"abl/internal/hostfs"
)

// RunSpec is the configuration of abl-run (Run): how to start the agent.
type RunSpec struct {
	Argv   []string `json:"argv"`
	Dir    string   `json:"dir"`
	Stdin  string   `json:"stdin"`  // path of a file, may be ""
	Stdout string   `json:"stdout"` // existing files, opened for appending
	Stderr string   `json:"stderr"`
	// Deadline, in Unix seconds, ends the agent even if abl has ended.
	Deadline int64 `json:"deadline"`
	// Probe is a file with a ProbeSpec to check before the agent starts, "" for no check.
	Probe string `json:"probe,omitempty"`
	// LimitMS is the maximum run time, 0 for no limit. After it, RunEnd.Late is set.
	LimitMS int64 `json:"limit_ms,omitempty"`
}

// RunEnd is the last line of standard output of process 1 of a container (in the engine's log). A
// container without it was killed from outside.
type RunEnd struct {
	Exit     int    `json:"exit"`
	Signal   string `json:"signal,omitempty"`
	Stopped  bool   `json:"stopped,omitempty"` // process 1 or its program got a signal to end
	Deadline bool   `json:"deadline,omitempty"`
	Error    string `json:"error,omitempty"`    // why the agent could not be started
	Unproven bool   `json:"unproven,omitempty"` // the reason is a failed probe
	Late     bool   `json:"late,omitempty"`     // ended after RunSpec.LimitMS
	// Ports lists the TCP ports on which it listened at the end, if LimitMS was set.
	Ports string `json:"ports,omitempty"`
	Full  string `json:"full,omitempty"` // FullPlaces at the end
}

// CmdSpec is the configuration of abl-cmd (Cmds).
type CmdSpec struct {
	Role      string `json:"role"`
	Phase     int    `json:"phase"`
	Iteration int    `json:"iteration"`
	Specs     string `json:"specs"`
	Dir       string `json:"dir"`
	// Reports lists the earlier run reports: name to modification time in ns.
	Reports  map[string]int64 `json:"reports,omitempty"`
	Commands []Command        `json:"commands"`
	// URL is the broker that runs the commands. If it is empty, they run here.
	URL   string `json:"url,omitempty"`
	Token string `json:"token,omitempty"`
	// App is set for a program. The Verifier's copy has no Command.
	App *App `json:"app,omitempty"`
}

// Command is one declared command. The Verifier's copy has no Command line in it.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	Shown       bool   `json:"shown,omitempty"`      // the Verifier gets the output, up to a limit
	Background  bool   `json:"background,omitempty"` // starts the system and keeps running
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
}

// BrokerSpec is the configuration of abl-broker (Broker).
type BrokerSpec struct {
	Token    string    `json:"token"`
	Port     int       `json:"port"`
	Dir      string    `json:"dir"`
	App      *App      `json:"app,omitempty"` // nil if a background command starts the system
	Services []Service `json:"services,omitempty"`
	Commands []Command `json:"commands"`
	Events   string    `json:"events"`
	Log      string    `json:"log"`
	Deadline int64     `json:"deadline"` // Unix seconds
	// Probe is a file with a ProbeSpec to check before the app starts, "" for no check.
	Probe string `json:"probe,omitempty"`
}

// The types of apps other than HTTP servers.
const (
	KindTCP     = "tcp"
	KindCommand = "command"
)

// App describes how to start the system under test and when it is ready, or how to run a program.
type App struct {
	Kind    string `json:"kind,omitempty"` // "" for HTTP
	Command string `json:"command,omitempty"`
	Prepare string `json:"prepare,omitempty"` // command of app.prepare, which abl runs before
	Build   string `json:"build,omitempty"`   // command of app.build, which abl runs before
	Port    int    `json:"port,omitempty"`
	// Path is requested with GET: any status below 500 means ready. "" checks only the port.
	Path      string `json:"path,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // for the start, or for one run of a program

	Env []string `json:"env,omitempty"` // environment of its container, or of each run of a program
}

// IsProgram reports whether the app is a program that tests run, so that nothing is started
// beforehand.
func (a *App) IsProgram() bool { return a != nil && a.Kind == KindCommand }

// URL returns the address of the app for its tests, "" for a program or a nil App.
func (a *App) URL() string {
	if a == nil || a.IsProgram() {
		return ""
	}
	return fmt.Sprintf("%s://%s:%d", cmp.Or(a.Kind, "http"), AppAlias, a.Port)
}

// AppRun describes one run of a program. abl-cmd app sends it at the beginning of its standard
// input.
type AppRun struct {
	Args  [][]byte          `json:"args"`
	Files map[string][]byte `json:"files,omitempty"` // files of the exchange directory by path
}

// AppRan is the result of one run of a program.
type AppRan struct {
	Args   [][]byte          `json:"args,omitempty"` // arguments of the run
	Exit   int               `json:"exit"`
	Stdout []byte            `json:"stdout,omitempty"`
	Stderr []byte            `json:"stderr,omitempty"`
	Files  map[string][]byte `json:"files,omitempty"` // files of the exchange directory afterwards
	Left   []string          `json:"left,omitempty"`  // omitted parts with reasons
	Error  string            `json:"error,omitempty"` // why it did not run, or not to the end
}

// Service is a container that must respond before the app or the Builder starts.
type Service struct {
	Name      string `json:"name"`
	Port      int    `json:"port"`
	Path      string `json:"path,omitempty"` // see App.Path
	TimeoutMS int64  `json:"timeout_ms"`
}

// Event is one line of the broker's events file.
type Event struct {
	Event  string `json:"event"` // listening, ready, failed, exited, restarted, command
	Name   string `json:"name,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
	MS     int64  `json:"ms"`
	Detail string `json:"detail,omitempty"` // result of the readiness check, never source
	// Asked is set for exited if a signal ended the app while, or shortly after, a declared
	// command ran.
	Asked bool `json:"asked,omitempty"`
}

// CommandReply is the broker's response to POST /run/NAME and /restart.
type CommandReply struct {
	Exit      int    `json:"exit"`
	Output    string `json:"output,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	Error     string `json:"error,omitempty"` // why it did not run
}

// Read reads one of these messages from a file.
func Read[T any](path string) (message T, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &message)
	}
	return message, err
}

// ReportsIn lists the non-empty run reports in a directory below dir with their modification times
// in ns. It ignores errors.
func ReportsIn(dir, name string) map[string]int64 {
	const most = 10_000
	found := map[string]int64{}
	files, _ := hostfs.List(dir, name, most)
	for _, f := range files {
		if f.Size > 0 {
			found[f.Name] = f.Mod.UnixNano()
		}
	}
	return found
}

// FreshReport returns the name of the run report of a call: a file phaseN_vI_….md that is new or
// was changed. before and now are results of ReportsIn. abl and abl-cmd check use the same rule.
func FreshReport(phase, iteration int, before, now map[string]int64) string {
	prefix := fmt.Sprintf("phase%d_v%d_", phase, iteration)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		lower := strings.ToLower(name)
		if strings.HasPrefix(lower, prefix) && strings.HasSuffix(lower, ".md") && before[name] != now[name] {
			return name
		}
	}
	return ""
}
