package witness

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"abl/internal/helper"
)

// stream is a place where a program leaves text.
type stream string

// The streams of a run. A message may be on either output.
const (
	stdout    stream = "standard output"
	stderr    stream = "standard error"
	leftFiles stream = "files"
	message   stream = "output"
)

// printed is a text that a contract names in the output or in the files of a run.
type printed struct {
	written
	on     stream
	line   bool // it is a whole line
	absent bool // it must not be there
}

var (
	onStderr = regexp.MustCompile(`(?i)\b(?:standard error|stderr)\b`)
	onStdout = regexp.MustCompile(`(?i)\b(?:standard output|stdout)\b`)
	inFile   = regexp.MustCompile(`\b(?:in|into|to) [A-Z]{2,}\b|\b[A-Z]{2,} (?:holds?|has|contains?|is)\b|(?i:\bfile\b)`)
	ofError  = regexp.MustCompile(`(?i)\b(?:error|message|usage|warning|complains?)\b`)
	// A text after these words is a whole line, if nothing else follows.
	wholeLine = regexp.MustCompile(`(?i)(?:^|(?:\b(?:prints?|printed|outputs?)(?: exactly| only)?|\blines?):? )$`)
	lineEnds  = regexp.MustCompile(`^(?:\s*(?:[,;.(]|$)|\s+(?:and|on|to|in|as)\b)`)
	// "prints 3"
	printsNumber = regexp.MustCompile(`(?i)(\b(?:prints?|outputs?)(?: exactly| only)? )(-?\d+(?:\.\d+)?)([,;.]?$|[,;] | and | on | to )`)
	inThisOrder  = regexp.MustCompile(`(?i)\bin th(?:is|at) order\b`)
	silence      = regexp.MustCompile(`(?i)\b(?:(?:prints?|outputs?|writes?) nothing|nothing (?:is |was )?(?:printed|written)|nothing|no output)(?: (?:on|to) (standard output|stdout|standard error|stderr))?|\b(standard output|stdout|standard error|stderr) (?:is|stays) empty`)
	notSilent    = regexp.MustCompile(`^ (?:but|else|except|other|new|more|to [A-Z]|into|in |happens|changes)`)
)

// readOutput reads what a result says of the output and the files of a run.
func (c *Claim) readOutput(action, result string) {
	for _, at := range inlineCode.FindAllStringIndex(result, -1) { // a later run: "and `notes list` shows it"
		if program, _, more := strings.Cut(strings.Trim(result[at[0]:at[1]], "`"), " "); more && len(c.command) > 0 && program == c.command[0] {
			result = result[:at[0]]
			break
		}
	}
	vars := variables(action, strings.ReplaceAll(result, "`", ""))
	if body, start, end := findDocument(inlineCode.ReplaceAllStringFunc(result, documentInCode), false); start >= 0 && body != nil {
		before := result[:start]
		if !negated.MatchString(before) && !inFile.MatchString(before) && !onStderr.MatchString(before) {
			c.json = body.opened(vars, nil)
		}
		result = before + result[end:]
	}
	result = inlineCode.ReplaceAllStringFunc(result, func(code string) string {
		if text := code[1 : len(code)-1]; !strings.Contains(text, `"`) && !capitals.MatchString(text) {
			return `"` + text + `"`
		}
		return strings.ReplaceAll(code, "`", "")
	})
	result = printsNumber.ReplaceAllString(result, `$1"$2"$3`)
	plain := blankQuotes(result)
	for _, m := range silence.FindAllStringSubmatchIndex(plain, -1) {
		text, rest := plain[m[0]:m[1]], plain[m[1]:]
		switch {
		case notSilent.MatchString(rest), strings.EqualFold(text, "nothing"):
		case onStderr.MatchString(text):
			c.silent = append(c.silent, stderr)
		default:
			c.silent = append(c.silent, stdout)
		}
	}
	c.ordered = inThisOrder.MatchString(plain)
	for _, group := range textGroups(result) {
		c.readGroup(vars, result, plain, group)
	}
}

// documentInCode returns blanks of the same length in place of the backticks, and of everything in
// them that is not a document.
func documentInCode(code string) string {
	if text := code[1 : len(code)-1]; isDocument(text) {
		return " " + text + " "
	}
	return strings.Repeat(" ", len(code))
}

// textGroups returns the positions of the quoted texts in groups: "a", "b" and "c".
func textGroups(result string) (all [][][]int) {
	for i, at := range quoted.FindAllStringIndex(result, maxTexts) {
		if n := len(all); i > 0 {
			last := all[n-1]
			if listed.MatchString(result[last[len(last)-1][1]:at[0]]) {
				all[n-1] = append(last, at)
				continue
			}
		}
		all = append(all, [][]int{at})
	}
	return all
}

// readGroup reads the texts of a group. The words around the group tell where they are.
func (c *Claim) readGroup(vars []string, result, plain string, group [][]int) {
	start, end := group[0][0], group[len(group)-1][1]
	before, after := plain[:start], plain[end:]
	clause := before[strings.LastIndexAny(before, ",;")+1:]
	rest, _, _ := strings.Cut(after, ",")
	on := message
	switch around := clause + rest; {
	case onStderr.MatchString(around):
		on = stderr
	case onStdout.MatchString(around):
		on = stdout
	case inFile.MatchString(around):
		on = leftFiles
	case !ofError.MatchString(around) && c.allows(0):
		on = stdout
	}
	absent := lacking.MatchString(before)
	if !absent && (negated.MatchString(clause) || notInBody.MatchString(clause) || isMissing.MatchString(after)) {
		return
	}
	for _, at := range group {
		w := written{unquoted(result[at[0]:at[1]]), vars}
		if w.text != "" && w.text != "nothing" && (!w.open() || slices.ContainsFunc(c.command, func(word string) bool {
			return placeholderName(word) != "" && placeholderName(word) == placeholderName(w.text)
		})) {
			line := on == stdout && wholeLine.MatchString(before) && lineEnds.MatchString(after)
			c.printed = append(c.printed, printed{w, on, line, absent})
		}
	}
}

// runEchoes returns the arguments in place of the command's placeholders.
func (c Claim) runEchoes(ran helper.AppRan) (all []echo) {
	if len(c.command) != len(ran.Args)+1 {
		return nil
	}
	for i, arg := range ran.Args {
		if name := placeholderName(c.command[i+1]); name != "" && isOpen(c.command[i+1]) {
			all = append(all, echo{written: name, open: true, sent: string(arg)})
		}
	}
	return all
}

// missesOutput describes how the output and the files of a run differ from the contract.
func (c Claim) missesOutput(ran helper.AppRan) string {
	for _, on := range c.silent {
		if text := ran.Stdout; len(bytes.TrimSpace(text)) > 0 && on == stdout || len(bytes.TrimSpace(ran.Stderr)) > 0 && on == stderr {
			return "something on " + string(on)
		}
	}
	echoes := c.runEchoes(ran)
	if c.json != nil {
		if doc, ok := decode(ran.Stdout); !ok || !c.json.fits(doc, echoes, false) {
			return "a different document"
		}
	}
	at := 0
	for _, p := range c.printed {
		text := p.fill(echoes)
		if text.open() {
			continue
		}
		all := p.on.of(ran)
		i := slices.IndexFunc(all, func(data string) bool { return p.isOn(text, data) })
		if (i >= 0) == p.absent {
			return fmt.Sprintf("%s %s on %s", map[bool]string{true: "with", false: "without"}[p.absent], text, p.on)
		}
		if c.ordered && len(all) == 1 && !p.absent {
			rest := all[0][min(at, len(all[0])):]
			if !p.isOn(text, rest) {
				return fmt.Sprintf("%s in another place", text)
			}
			at += max(0, strings.Index(rest, text.text)) + len(text.text)
		}
	}
	return ""
}

// isOn reports whether data has the text, as a line if the contract says so.
func (p printed) isOn(text written, data string) bool {
	if !p.line {
		return text.isIn(data)
	}
	return text.equals(strings.TrimSpace(data)) || slices.ContainsFunc(strings.Split(data, "\n"), func(line string) bool {
		return text.equals(strings.TrimSpace(line))
	})
}

// of returns the content of a stream, or of each file.
func (on stream) of(ran helper.AppRan) (all []string) {
	switch on {
	case stdout:
		return []string{string(ran.Stdout)}
	case stderr:
		return []string{string(ran.Stderr)}
	case leftFiles:
		for _, name := range slices.Sorted(maps.Keys(ran.Files)) {
			all = append(all, string(ran.Files[name]))
		}
		return all
	}
	return []string{string(bytes.Join([][]byte{ran.Stdout, ran.Stderr}, []byte("\n")))}
}
