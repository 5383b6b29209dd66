package witness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"abl/internal/helper"
	"abl/internal/wording"
)

// maxRequest is the maximum length of a request or command line in a report, in characters.
const maxRequest = 200

// Request returns the request on one line, for reports. For a run of a program it returns the
// arguments.
func (x Exchange) Request() string {
	if ran, ok := x.run(); ok {
		return wording.Cut("run with "+arguments(ran), maxRequest)
	}
	return wording.Cut(wording.OneLine(x.Method+" "+x.Target), maxRequest)
}

// Line returns the exchange on one line: "GET /notes → 200", "run with add milk → exit code 0".
func (x Exchange) Line() string {
	if ran, ok := x.run(); ok {
		return fmt.Sprintf("%s → exit code %d", x.Request(), ran.Exit)
	}
	return fmt.Sprintf("%s → %d", x.Request(), x.Status)
}

// Texts returns the request and the response as text. For a run of a program these are the
// arguments, input and files, and the exit code, output and files.
func (x Exchange) Texts() (request, answer string) {
	if ran, ok := x.run(); ok {
		return x.Request() + "\n" + inputText(x.Sent), result(ran)
	}
	answer = fmt.Sprintln(x.Status)
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		answer += name + ": " + strings.Join(x.Header[name], ", ") + "\n"
	}
	return x.Request() + "\n\n" + text(x.Sent), answer + "\n" + text(x.Got)
}

// arguments returns the arguments of a run on one line, quoted where a shell needs it.
func arguments(ran helper.AppRan) string {
	var all []string
	for _, arg := range ran.Args {
		word := string(arg)
		if word == "" || strings.ContainsAny(word, " \t\r\n\"'\\$`|&;<>()*?#~") {
			word = strconv.Quote(word)
		}
		all = append(all, word)
	}
	if len(all) == 0 {
		return "no arguments"
	}
	return wording.OneLine(strings.Join(all, " "))
}

// inputText returns the input and the files of a run. The input follows the JSON document at the start
// of the body.
func inputText(sent Body) (text string) {
	var run helper.AppRun
	in := json.NewDecoder(bytes.NewReader(sent.Begins))
	if in.Decode(&run) != nil {
		return fmt.Sprintf("%d bytes of input and files (not kept)\n", sent.Bytes)
	}
	return part("input", sent.Begins[in.InputOffset():], sent.Bytes-int64(len(sent.Begins))) + files(run.Files)
}

// result returns the exit code, the output and the files of a run.
func result(ran helper.AppRan) string {
	text := fmt.Sprintf("exit code %d\n", ran.Exit) + part("standard output", ran.Stdout, 0) +
		part("standard error", ran.Stderr, 0) + files(ran.Files)
	for _, why := range ran.Left {
		text += "not kept: " + why + "\n"
	}
	return text
}

func files(all map[string][]byte) (text string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text += part("file "+name, all[name], 0)
	}
	return text
}

// part returns data under a heading, "" if data is empty. more is the number of bytes that were not
// kept.
func part(name string, data []byte, more int64) string {
	if len(data) == 0 {
		return ""
	}
	return fmt.Sprintf("\n%s:\n%s\n", name, strings.TrimSuffix(text(Body{Bytes: int64(len(data)) + more, Begins: data}), "\n"))
}

// text returns a body if it is text, else its size.
func text(b Body) string {
	switch more := b.Bytes - int64(len(b.Begins)); {
	case b.Bytes == 0:
		return ""
	case len(b.Begins) == 0 || !utf8.Valid(b.Begins) && more == 0:
		return wording.Count(int(b.Bytes), "byte") + " (not text, or not kept)"
	case more > 0:
		return fmt.Sprintf("%s\n… %d more bytes", b.Begins, more)
	}
	return string(b.Begins)
}
