package learner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Prompts is the content of prompts.md: the prompt in use, and below it every earlier
// one with its number and the time of its archiving. A prompt may hold any text, these
// very headings too: such a line is escaped with a backslash, which Markdown shows as
// the same line.
type Prompts struct {
	Head    string // what a person wrote above the first heading
	Current string
	Past    []Version // the oldest first
}

// Version is an earlier prompt.
type Version struct {
	Title string // "1 - 2026-11-22 01:02:03", or what a person made of it
	Text  string
}

// Bounds: of one prompt, and of the file, in bytes.
const (
	maxPrompt  = 32 << 10
	maxPrompts = 2 << 20
)

const (
	currentHeading = "# Current Prompt"
	pastHeading    = "# Past Prompts"
)

// heading is a line that divides the file, escaped ones included.
var heading = regexp.MustCompile(`^(\\*)(# Current Prompt|# Past Prompts|## Version(?: .*)?)[ \t]*$`)

// ParsePrompts reads prompts.md. It takes any text: one without the headings is a
// prompt that a person wrote.
func ParsePrompts(text string) Prompts {
	var b Prompts
	part, into := &b.Head, []string(nil)
	flush := func() { *part, into = joined(into), nil }
	began, inPast := false, false
	for _, line := range splitLines(text) {
		m := heading.FindStringSubmatch(line)
		switch {
		case m == nil:
			into = append(into, line)
		case m[1] != "": // escaped
			into = append(into, line[1:])
		case m[2] == currentHeading && !began:
			flush()
			part, began = &b.Current, true
		case m[2] == pastHeading && !inPast:
			flush()
			part, inPast = new(string), true // what stands before the first version is no prompt
		case inPast && strings.HasPrefix(m[2], "## Version"):
			flush()
			b.Past = append(b.Past, Version{Title: strings.TrimSpace(strings.TrimPrefix(m[2], "## Version"))})
			part = &b.Past[len(b.Past)-1].Text
		default:
			into = append(into, line)
		}
	}
	flush()
	if !began {
		b.Head, b.Current = "", b.Head
	}
	return b
}

// escape is a text without the empty lines around it, its headings escaped.
func escape(text string) string {
	lines := splitLines(text)
	for i, line := range lines {
		if heading.MatchString(line) {
			lines[i] = `\` + line
		}
	}
	return joined(lines)
}

// joined are lines without the empty ones around them.
func joined(lines []string) string { return strings.Trim(strings.Join(lines, "\n"), "\n") }

// Render writes prompts.md. What it writes reads back as the same prompts.
func (b Prompts) Render() string {
	var s strings.Builder
	if head := escape(b.Head); head != "" {
		s.WriteString(head + "\n\n")
	}
	fmt.Fprintf(&s, "%s\n\n%s\n\n%s\n", currentHeading, escape(b.Current), pastHeading)
	for _, v := range b.Past {
		title := strings.Join(strings.Fields("## Version "+v.Title), " ")
		fmt.Fprintf(&s, "\n%s\n\n%s\n", title, escape(v.Text))
	}
	return s.String()
}

// Next archives the prompt in use and puts another in its place. An empty one
// leaves the text as it is; a version it becomes all the same.
func (b Prompts) Next(prompt string, at time.Time) Prompts {
	b.Past = append(slices.Clone(b.Past), Version{Title: fmt.Sprintf("%d - %s", b.Number()+1, at.UTC().Format(time.DateTime)), Text: b.Current})
	if strings.TrimSpace(prompt) != "" {
		b.Current = strings.ToValidUTF8(prompt[:min(len(prompt), maxPrompt)], "")
	}
	for len(b.Past) > 1 && len(b.Render()) > maxPrompts {
		b.Past = b.Past[1:] // the oldest goes; the numbers stay what they were
	}
	return b
}

// Number is that of the last archived version, 0 for none.
func (b Prompts) Number() int {
	most := 0
	for _, v := range b.Past {
		var n int
		if _, err := fmt.Sscanf(v.Title, "%d", &n); err == nil && n < 1<<30 {
			most = max(most, n)
		}
	}
	return most
}

// Improved is the prompt in a model's answer, "" when there is none. Asked for nothing
// but the prompt, models put a sentence or a title before it, or a fence around it, all the same.
func Improved(text string) string {
	lines := splitLines(strings.TrimSpace(text))
	for len(lines) > 1 && (preface.MatchString(lines[0]) || lines[0] == "") {
		lines = lines[1:]
	}
	mark := fence.FindString(lines[0])
	if last := len(lines) - 1; mark != "" && last > 0 && lines[last] == mark {
		lines = lines[1:last]
	}
	if text = joined(lines); strings.TrimSpace(text) == "" || isPlaceholder(text) {
		return ""
	}
	return text
}

var (
	// preface is a line that only says that the prompt follows, or the file's own heading.
	preface = regexp.MustCompile(`(?i)^((here|sure|the improved|improved)\b.{0,120}\bprompt.{0,40}:|[#* ]*(current|improved|new) prompt[*: ]*)$`)
	fence   = regexp.MustCompile("^(```+|~~~+)")
)
