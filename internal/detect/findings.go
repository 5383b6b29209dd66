package detect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// start is one way to start a server.
type start struct {
	command string
	from    Source
	port    int    // the port that the command listens on, 0 if it names none
	env     []Fact // variables that the command needs, as app.env.NAME
	note    string
	own     bool // abl made the command with its port, which no other file changes
}

// findings collects what the sources find.
type findings struct {
	wish     Wish
	report   Report
	values   map[string]Fact   // by key; the first source wins, and is the most trusted
	deps     map[string]Source // the names of the packages that the app depends on
	starts   []start           // the most trusted first
	ports    []Fact            // the most trusted first
	servers  []Fact            // evidence that app.kind is http or tcp; the value "" is either
	programs []Fact            // evidence that app.kind is command: a program, or a library
	commands []Fact            // candidates for app.command of kind command
	readsEnv bool              // the app reads a .env file
	portVar  Source            // where the app reads the variable PORT, if it does
	barred   map[string]bool   // keys that stay open whatever is found
	renamed  []string          // services of the compose file with a name that abl does not accept
	open     []Open            // the first of a key wins, unless the key has a value in the end
}

// set records a value unless a more trusted source set one. An empty value is ignored.
func (f *findings) set(key, value string, from Source) { f.note(key, value, from, "") }

// note is set with an explanation.
func (f *findings) note(key, value string, from Source, note string) {
	if _, found := f.values[key]; !found && value != "" {
		f.values[key] = Fact{key, value, from, note}
	}
}

// check records a command of the Builder.
func (f *findings) check(name, command, description string, from Source) {
	f.note("builder_commands."+name, command, from, description)
}

// ask records that a key has no certain value.
func (f *findings) ask(key, why string, choices ...Fact) {
	f.open = append(f.open, Open{Key: key, Why: why, Choices: choices})
}

// asked reports whether a key is open.
func (f *findings) asked(key string) bool {
	return slices.ContainsFunc(f.open, func(o Open) bool { return o.Key == key })
}

// forbid keeps a key open whatever is found: the repository needs something that abl lacks.
func (f *findings) forbid(key, why string) {
	f.barred[key] = true
	f.ask(key, why)
}

// say records a message for the user.
func (f *findings) say(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(f.report.Notes, text) {
		f.report.Notes = append(f.report.Notes, text)
	}
}

// needs records Debian packages, separated by blanks.
func (f *findings) needs(from Source, packages string) {
	for name := range strings.FieldsSeq(packages) {
		if !slices.ContainsFunc(f.report.Packages, func(f Fact) bool { return f.Value == name }) {
			f.report.Packages = append(f.report.Packages, fact("package", name, from))
		}
	}
}

// server records evidence of a server. The kind is http, tcp or "".
func (f *findings) server(kind string, from Source) {
	f.servers = append(f.servers, fact("app.kind", kind, from))
}

// program records evidence that the system is a program, or a library, with the command that runs
// it, "" without one.
func (f *findings) program(what, command string, from Source, note string) {
	f.programs = append(f.programs, Fact{"app.kind", "command", from, what})
	if command != "" {
		f.commands = append(f.commands, Fact{"app.command", command, from, note})
	}
}

// library records that the system is a library, which tests use through the interpreter.
func (f *findings) library(from Source, interpreter, note string) {
	f.program("a library", interpreter, from, "a library: "+note)
}

// noServer drops the evidence of a server: it belongs to something other than the app.
func (f *findings) noServer() { f.servers, f.ports = nil, nil }

// listens records a port.
func (f *findings) listens(port string, from Source) {
	if n, _ := strconv.Atoi(port); n > 0 && n <= 65535 {
		f.ports = append(f.ports, fact("app.port", port, from))
	}
}

// readsPort records that the app reads the variable PORT.
func (f *findings) readsPort(from Source) { f.portVar = cmp.Or(f.portVar, from) }

// try records a command that starts the server.
func (f *findings) try(command string, from Source) { f.addStart(start{command: command, from: from}) }

// serve records a command that abl made to start the server on a port.
func (f *findings) serve(command string, from Source) {
	f.addStart(start{command: command, from: from, own: true})
}

// addStart records a way to start the server.
func (f *findings) addStart(s start) {
	s.port = cmp.Or(s.port, portIn(s.command))
	f.starts = append(f.starts, s)
}

// fact returns a fact without a note.
func fact(key, value string, from Source) Fact { return Fact{key, value, from, ""} }

// candidate returns a command that app.command may be.
func candidate(command string, from Source) Fact { return fact("app.command", command, from) }

// dependency returns the first of the packages that the app depends on, "" for none.
func (f *findings) dependency(packages string) string {
	for name := range strings.FieldsSeq(packages) {
		if f.deps[name].File != "" {
			return name
		}
	}
	return ""
}

// depends records the first of the packages that the app depends on as evidence of an HTTP server.
func (f *findings) depends(packages string, accept func(name string, from Source) bool) {
	for name := range strings.FieldsSeq(packages) {
		if from, ok := f.deps[name]; ok && accept(name, from) {
			f.server("http", from)
			return
		}
	}
}

// matches records what the expressions find in a source file: the groups of an expression are
// ports. An expression without a group finds a use of the variable PORT.
func (f *findings) matches(file, text string, all ...string) {
	for _, pattern := range all {
		for _, at := range compile(pattern).FindAllStringSubmatchIndex(text, 5) {
			from := Source{file, lineAt(text, at[0])}
			if len(at) == 2 {
				f.readsPort(from)
			}
			for g := 2; g < len(at); g += 2 {
				if at[g] >= 0 {
					f.listens(text[at[g]:at[g+1]], from)
				}
			}
		}
	}
}

// signs are the expressions that find a server in the sources of a language.
type signs struct {
	ports     []string
	http, tcp string // "" for a language without such an expression
	local     string // listens on 127.0.0.1, likewise
}

// scan records the ports in a source file. It returns the kind of the server that the file contains,
// "" for none, and its place.
func (f *findings) scan(file, text string, s signs) (kind string, from Source) {
	f.matches(file, text, s.ports...)
	if match(s.local, text) {
		f.say("%s listens on 127.0.0.1 only: abl's tests do not reach it until it listens on 0.0.0.0",
			find(file, text, s.local))
	}
	switch {
	case match(s.http, text):
		return "http", find(file, text, s.http)
	case match(s.tcp, text):
		return "tcp", find(file, text, s.tcp)
	}
	return "", Source{}
}

const ready = "[\"'`(]((?:/api(?:/v\\d+)?)?/" +
	"(?:_?healthz?|_?health-?check|healthcheck|readyz?|livez|up))/?[\"'`)]"

// route records the route of a health check in a source file.
func (f *findings) route(file, text string) {
	f.set("app.ready.path", capture(ready, text), find(file, text, ready))
}

// find returns the place of the first match in a file.
func find(file, text, pattern string) Source {
	if at := compile(pattern).FindStringIndex(text); at != nil {
		return Source{file, lineAt(text, at[0])}
	}
	return Source{File: file}
}

// lineAt returns the number of the line of an offset.
func lineAt(text string, offset int) string {
	return strconv.Itoa(1 + strings.Count(text[:offset], "\n"))
}

// expressions has the compiled form of the expressions that were used so far: most runs of abl use none.
var expressions sync.Map

func compile(pattern string) *regexp.Regexp {
	if e, ok := expressions.Load(pattern); ok {
		return e.(*regexp.Regexp)
	}
	e := regexp.MustCompile(pattern)
	expressions.Store(pattern, e)
	return e
}

// match reports whether an expression matches. The empty expression never does.
func match(pattern, text string) bool { return pattern != "" && compile(pattern).MatchString(text) }

// capture returns the first group that matched and is not empty, or "".
func capture(pattern, text string) string {
	if m := compile(pattern).FindStringSubmatch(text); m != nil {
		return cmp.Or(m[1:]...)
	}
	return ""
}

// captures returns all matches, each with its groups.
func captures(pattern, text string) [][]string {
	return compile(pattern).FindAllStringSubmatch(text, -1)
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// fields returns the words of a list.
func fields(list string) []string { return strings.Fields(list) }
