package modelserver

import (
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"abl/roles/agent"
)

// The functions that Gemini CLI offers to the model.
const (
	toolShell = "run_shell_command"
	toolWrite = "write_file"
)

// mark matches the line of a prompt that names its call.
var mark = regexp.MustCompile(`\[abl call (builder|verifier|generate|review|learnings|mistakes|improve) phase (\d{1,9}) iteration (\d{1,9}) attempt (\d{1,9})\]`)

// Mark returns the line that a call's prompt must contain so that Scenario finds the call.
func Mark(role string, phase, iteration, attempt int) string {
	return fmt.Sprintf("[abl call %s phase %d iteration %d attempt %d]", role, phase, iteration, attempt)
}

// Places holds the paths inside a role's container that a script uses.
type Places struct {
	Workspaces map[string]string // by role
	AppURL     string
}

// Scenario returns a source that plays the calls of a scenario. The last mark in the conversation
// selects the call.
func Scenario(s agent.Scenario, places Places, now func() time.Time) Source {
	return func(prompt string) (Script, error) {
		all := mark.FindAllStringSubmatch(prompt, -1)
		if all == nil {
			return Script{}, fmt.Errorf("the conversation does not contain \"[abl call ROLE phase N iteration N attempt N]\"")
		}
		m := all[len(all)-1] // a prompt ends with its own mark
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+2]) // the pattern allows only digits
		}
		c, ok := s.Pick(m[1], n[0], n[1], n[2])
		if !ok {
			return Script{}, fmt.Errorf("the scenario has no call for %s", m[0])
		}
		v := agent.Values{Phase: n[0], Iteration: n[1], Step: n[1], Time: now(), AppURL: places.AppURL}
		dir, ok := places.Workspaces[c.Role]
		if !ok {
			dir = places.Workspaces["builder"] // a learning step runs in the Builder's workspace
		}
		t := turns{call: c, values: v, dir: dir}
		for i, step := range c.Steps {
			t.step(i+1, step)
		}
		return t.script(), nil
	}
}

// turns collects the function calls of a scripted call.
type turns struct {
	call   agent.ScriptCall
	values agent.Values
	dir    string
	said   string // sent with the next function call
	list   []Turn
}

func (t *turns) function(name string, args map[string]any) {
	t.list = append(t.list, Turn{Text: t.said, Name: name, Args: args})
	t.said = ""
}

func (t *turns) shell(command, why string) {
	t.function(toolShell, map[string]any{"command": command, "description": why})
}

func (t *turns) write(name, text string) {
	t.function(toolWrite, map[string]any{"file_path": path.Join(t.dir, name), "content": text})
}

// builds matches the names of files that the CLI's write_file refuses to write, because build
// tools run them.
var builds = regexp.MustCompile(`(?i)^(build|workspace|module\.bazel|\.bazelrc|\.blazerc|(gnu)?makefile|cmakelists\.txt|` +
	`package(-lock)?\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|setup\.(py|cfg)|pyproject\.toml|go\.(mod|sum|work)|` +
	`cargo\.(toml|lock)|pom\.xml|(docker|container)file(\..+)?|.+\.(bazel|bzl|bzlmod|gradle|kts|mk|cmake))$`)

// file writes a file of a step. If write_file refuses its name, it writes another file and moves
// it with the shell.
func (t *turns) file(number int, name, text string) {
	if !builds.MatchString(path.Base(name)) {
		t.write(name, text)
		return
	}
	part := fmt.Sprintf(".abl-write-%d", number)
	t.write(part, text)
	t.shell(fmt.Sprintf("mkdir -p %s && mv -f %s %s", quote(path.Dir(name)), part, quote(name)), "Write a build file")
}

// step adds the function calls that carry out one step.
func (t *turns) step(number int, s agent.Step) {
	switch s.Kind() {
	case "say":
		t.said += t.values.Fill(*s.Say) + "\n"
	case "write":
		t.file(number, s.Write, t.values.Fill(s.Text))
		if s.Mode != "" {
			t.shell("chmod "+s.Mode+" "+quote(s.Write), "Set the permission bits")
		}
	case "append":
		part := fmt.Sprintf(".abl-append-%d", number)
		t.write(part, t.values.Fill(s.Text))
		t.shell(fmt.Sprintf("mkdir -p %s && cat %s >> %s && rm %[2]s",
			quote(path.Dir(s.Append)), part, quote(s.Append)), "Append to a file")
	case "delete":
		t.shell("rm -rf "+quote(s.Delete), "Delete")
	case "run":
		t.run(number, t.values.Fill(s.Run))
	case "sleep":
		t.shell(fmt.Sprintf("sleep %.3f", time.Duration(s.Sleep).Seconds()), "Wait")
	case "print":
		t.shell(fmt.Sprintf("yes 'a line of output' | head -c %d", s.Print), "Print")
	case "report":
		t.write(agent.ReportPath(t.call.Role, t.values.Phase, t.values.Iteration, t.values.Time), t.values.Fill(*s.Report))
	}
}

// run runs a command. The CLI refuses substitutions in a command line, so a command with one is
// written to a file, as is a command with several lines.
func (t *turns) run(number int, command string) {
	if !strings.ContainsAny(command, "`\n") && !strings.Contains(command, "$(") &&
		!strings.Contains(command, "<(") && !strings.Contains(command, ">(") {
		t.shell(command, "Run")
		return
	}
	file := fmt.Sprintf(".abl-run-%d.sh", number)
	t.write(file, command+"\n")
	t.shell(fmt.Sprintf("sh ./%s; code=$?; rm -f %[1]s; exit $code", file), "Run")
}

// script returns the script with the end of the call. For a crash, the CLI's shell kills the process
// that started it.
func (t *turns) script() Script {
	c := t.call
	end := Stop
	switch c.End {
	case agent.EndError, agent.EndAway, agent.EndLogin:
		end = Refuse
	case agent.EndSilent:
		end = Cut
	case agent.EndHang:
		end = NoAnswer
	case agent.EndCrash:
		t.shell("kill -9 $PPID", "Crash")
	}
	final := t.said
	if final == "" {
		final = "Done."
	}
	return Script{
		Name:  fmt.Sprintf("%s phase %d iteration %d attempt %d", c.Role, c.Phase, c.Iteration, c.Attempt),
		Turns: t.list,
		Final: final,
		End:   end,
		Usage: sum(c.Usage),
	}
}

// sum adds up the usage of all models, because the CLI uses only the configured model.
func sum(all []agent.ScriptUsage) Usage {
	value := func(n *int64) int64 {
		if n == nil {
			return 0
		}
		return *n
	}
	var u Usage
	for _, m := range all {
		u.Prompt += value(m.Input)
		u.Candidates += value(m.Candidates)
		u.Thoughts += value(m.Thoughts)
		u.Cached += value(m.Cached)
		u.Tool += value(m.Tool)
		if m.Total != nil {
			u.Total += *m.Total
		} else {
			u.Total += value(m.Input) + value(m.Candidates) + value(m.Thoughts) + value(m.Tool)
		}
	}
	return u
}

// quote returns a path as one shell word that is not mistaken for an option.
func quote(path string) string {
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
