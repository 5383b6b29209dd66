package detect

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// start is one way to start a server.
type start struct {
	command string
	from    Source
	port    int    // the port that the command listens on, 0 if it names none
	env     []Fact // variables that the command needs, as app.env.NAME
	note    string
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
	open     []Open            // the first of a key wins, unless the key has a value in the end
}

// set records a value unless a more trusted source set one. An empty value is ignored.
func (f *findings) set(key, value string, from Source) { f.note(key, value, from, "") }

// note is set with an explanation.
func (f *findings) note(key, value string, from Source, note string) {
	if _, found := f.values[key]; !found && value != "" {
		f.values[key] = Fact{Key: key, Value: value, From: from, Note: note}
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
			f.report.Packages = append(f.report.Packages, Fact{Key: "package", Value: name, From: from})
		}
	}
}

// server records evidence of a server. The kind is http, tcp or "".
func (f *findings) server(kind string, from Source) {
	f.servers = append(f.servers, Fact{Key: "app.kind", Value: kind, From: from})
}

// program records evidence that the system is a program, or a library, with the command that runs
// it, "" without one.
func (f *findings) program(what, command string, from Source, note string) {
	f.programs = append(f.programs, Fact{Key: "app.kind", Value: "command", From: from, Note: what})
	if command != "" {
		f.commands = append(f.commands, Fact{Key: "app.command", Value: command, From: from, Note: note})
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
		f.ports = append(f.ports, Fact{Key: "app.port", Value: port, From: from})
	}
}

// readsPort records that the app reads the variable PORT.
func (f *findings) readsPort(from Source) { f.portVar = cmp.Or(f.portVar, from) }

// try records a command that starts the server.
func (f *findings) try(command string, from Source) { f.addStart(start{command: command, from: from}) }

// addStart records a way to start the server.
func (f *findings) addStart(s start) {
	s.port = cmp.Or(s.port, portIn(s.command))
	f.starts = append(f.starts, s)
}

// candidate returns a command that app.command may be.
func candidate(command string, from Source) Fact {
	return Fact{Key: "app.command", Value: command, From: from}
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
func (f *findings) matches(file, text string, all ...*regexp.Regexp) {
	for _, e := range all {
		for _, at := range e.FindAllStringSubmatchIndex(text, 5) {
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
	ports     []*regexp.Regexp
	http, tcp *regexp.Regexp
	local     *regexp.Regexp // listens on 127.0.0.1, nil for a language without such an expression
}

// scan records the ports in a source file. It returns the kind of the server that the file contains,
// "" for none, and its place.
func (f *findings) scan(file, text string, s signs) (kind string, from Source) {
	f.matches(file, text, s.ports...)
	if s.local != nil && s.local.MatchString(text) {
		f.say("%s listens on 127.0.0.1 only: abl's tests do not reach it until it listens on 0.0.0.0",
			find(file, text, s.local))
	}
	switch {
	case s.http.MatchString(text):
		return "http", find(file, text, s.http)
	case s.tcp.MatchString(text):
		return "tcp", find(file, text, s.tcp)
	}
	return "", Source{}
}

var ready = regexp.MustCompile("[\"'`(]((?:/api(?:/v\\d+)?)?/" +
	"(?:_?healthz?|_?health-?check|healthcheck|readyz?|livez|up))/?[\"'`)]")

// route records the route of a health check in a source file.
func (f *findings) route(file, text string) {
	f.set("app.ready.path", captured(ready, text), find(file, text, ready))
}

// find returns the place of the first match in a file.
func find(file, text string, e *regexp.Regexp) Source {
	if at := e.FindStringIndex(text); at != nil {
		return Source{file, lineAt(text, at[0])}
	}
	return Source{File: file}
}

// lineAt returns the number of the line of an offset.
func lineAt(text string, offset int) string {
	return strconv.Itoa(1 + strings.Count(text[:offset], "\n"))
}

// captured returns the first group that matched and is not empty, or "".
func captured(e *regexp.Regexp, text string) string {
	if m := e.FindStringSubmatch(text); m != nil {
		return cmp.Or(m[1:]...)
	}
	return ""
}

// capture is captured for an expression that is used once.
func capture(pattern, text string) string {
	return captured(regexp.MustCompile(pattern), text)
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// fields returns the words of a list.
func fields(list string) []string { return strings.Fields(list) }
