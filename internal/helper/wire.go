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

// RunSpec is what abl-run reads (Run): how to start the agent.
type RunSpec struct {
	Argv   []string `json:"argv"`
	Dir    string   `json:"dir"`
	Stdin  string   `json:"stdin"`  // path of a file, "" for none
	Stdout string   `json:"stdout"` // existing files, opened for appending
	Stderr string   `json:"stderr"`
	// Unix seconds: the dead-man switch, should abl be gone by then.
	Deadline int64 `json:"deadline"`
	// File with what has to hold before the agent starts; "" for nothing.
	Probe string `json:"probe,omitempty"`
	// What still runs so long after its start is ended, and RunEnd.Late says so; 0 for no limit.
	LimitMS int64 `json:"limit_ms,omitempty"`
}

// RunEnd is the last word of process 1 of a container, one JSON line on its own standard output
// (the engine's log). A container without one was killed from outside.
type RunEnd struct {
	Exit     int    `json:"exit"`
	Signal   string `json:"signal,omitempty"`
	Stopped  bool   `json:"stopped,omitempty"` // process 1 or its program was asked to end, by whomever
	Deadline bool   `json:"deadline,omitempty"`
	Error    string `json:"error,omitempty"`    // the agent could not be started
	Unproven bool   `json:"unproven,omitempty"` // because what has to hold does not
	Late     bool   `json:"late,omitempty"`     // it was still running at RunSpec.LimitMS
	// TCP ports on which it listened in the end, by spaces; asked for by LimitMS.
	Ports string `json:"ports,omitempty"`
	Full  string `json:"full,omitempty"` // the places in memory that were full in the end, as FullPlaces
}

// CmdSpec is what abl-cmd reads (Cmds).
type CmdSpec struct {
	Role      string `json:"role"`
	Phase     int    `json:"phase"`
	Iteration int    `json:"iteration"`
	Specs     string `json:"specs"`
	Dir       string `json:"dir"`
	// Run reports that were there before, name → modification time in ns.
	Reports  map[string]int64 `json:"reports,omitempty"`
	Commands []Command        `json:"commands"`
	// Set: commands run at the broker there; empty: they run here.
	URL   string `json:"url,omitempty"`
	Token string `json:"token,omitempty"`
	// A program; the Verifier's copy has no Command in it.
	App *App `json:"app,omitempty"`
}

// Command is one declared command. The Verifier's copy has no Command line in it.
type Command struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Command     string `json:"command,omitempty"`
	Shown       bool   `json:"shown,omitempty"`      // output reaches the Verifier, capped
	Background  bool   `json:"background,omitempty"` // starts the system and stays
	TimeoutMS   int64  `json:"timeout_ms,omitempty"`
}

// BrokerSpec is what abl-broker reads (Broker).
type BrokerSpec struct {
	Token    string    `json:"token"`
	Port     int       `json:"port"`
	Dir      string    `json:"dir"`
	App      *App      `json:"app,omitempty"` // nil: idle until a background command starts the system
	Services []Service `json:"services,omitempty"`
	Commands []Command `json:"commands"`
	Events   string    `json:"events"`
	Log      string    `json:"log"`
	Deadline int64     `json:"deadline"` // Unix seconds
	// File with what has to hold before the app starts; "" for nothing.
	Probe string `json:"probe,omitempty"`
}

// The kinds of systems that are no HTTP server.
const (
	KindTCP     = "tcp"
	KindCommand = "command"
)

// App says how the system under test starts and when it is ready, or how a program is run.
type App struct {
	Kind    string `json:"kind,omitempty"` // "" is HTTP
	Command string `json:"command,omitempty"`
	Prepare string `json:"prepare,omitempty"` // the command of app.prepare, for abl
	Build   string `json:"build,omitempty"`   // the command of app.build, for abl
	Port    int    `json:"port,omitempty"`
	// Probed with GET, any status below 500 is ready; "" probes the port alone.
	Path      string `json:"path,omitempty"`
	TimeoutMS int64  `json:"timeout_ms,omitempty"` // until it is ready, or for one run of a program

	Env []string `json:"env,omitempty"` // of its container; a program has it wherever it is run
}

// IsProgram says that nothing is started beforehand: the app is a program that is run.
func (a *App) IsProgram() bool { return a != nil && a.Kind == KindCommand }

// URL is where its tests find it, "" for none and for a program.
func (a *App) URL() string {
	if a == nil || a.IsProgram() {
		return ""
	}
	return fmt.Sprintf("%s://%s:%d", cmp.Or(a.Kind, "http"), AppAlias, a.Port)
}

// AppRun is what abl-cmd app sends for one run of a program, at the head of its standard input.
type AppRun struct {
	Args  [][]byte          `json:"args"`
	Files map[string][]byte `json:"files,omitempty"` // of the exchange folder, by path
}

// AppRan is what came of it.
type AppRan struct {
	Args   [][]byte          `json:"args,omitempty"` // that it was given
	Exit   int               `json:"exit"`
	Stdout []byte            `json:"stdout,omitempty"`
	Stderr []byte            `json:"stderr,omitempty"`
	Files  map[string][]byte `json:"files,omitempty"` // that stood there afterwards
	Left   []string          `json:"left,omitempty"`  // what is left out of all this, and why
	Error  string            `json:"error,omitempty"` // why it was not run, or not to its end
}

// Service is a further box that must answer before the app, or the Builder, starts.
type Service struct {
	Name      string `json:"name"`
	Port      int    `json:"port"`
	Path      string `json:"path,omitempty"` // as the app's
	TimeoutMS int64  `json:"timeout_ms"`
}

// Event is one line of the broker's events file.
type Event struct {
	Event  string `json:"event"` // listening, ready, failed, exited, restarted, command
	Name   string `json:"name,omitempty"`
	Exit   *int   `json:"exit,omitempty"`
	MS     int64  `json:"ms"`
	Detail string `json:"detail,omitempty"` // what the readiness probe saw; never source
	// Exited: by a signal, and a declared command ran then or shortly before.
	Asked bool `json:"asked,omitempty"`
}

// CommandReply is the broker's answer to POST /run/NAME and /restart.
type CommandReply struct {
	Exit      int    `json:"exit"`
	Output    string `json:"output,omitempty"`
	Truncated bool   `json:"truncated,omitempty"`
	Error     string `json:"error,omitempty"` // why it was not run
}

// Read reads one of the messages here from its file.
func Read[T any](path string) (message T, err error) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &message)
	}
	return message, err
}

// ReportsIn lists the run reports in a folder below dir with their modification times, in
// ns, without empty ones. Where none can be listed there is none.
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

// FreshReport names the run report that a call left: a file phaseN_vI_….md
// that was not there before, or has been written since. before and now are what
// ReportsIn lists. abl and abl-cmd check both go by this.
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
