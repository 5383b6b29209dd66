package learner

import (
	"fmt"
	"regexp"
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
	versionPrefix  = "## Version "
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

func escape(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if heading.MatchString(line) {
			lines[i] = `\` + line
		}
	}
	return strings.Join(lines, "\n")
}

// Render writes prompts.md. What it writes reads back as the same prompts.
func (b Prompts) Render() string {
	b = b.normal()
	var s strings.Builder
	if b.Head != "" {
		s.WriteString(escape(b.Head) + "\n\n")
	}
	fmt.Fprintf(&s, "%s\n\n%s\n\n%s\n", currentHeading, escape(b.Current), pastHeading)
	for _, v := range b.Past {
		fmt.Fprintf(&s, "\n%s\n\n%s\n", strings.TrimSpace(versionPrefix+v.Title), escape(v.Text))
	}
	return s.String()
}

// normal is what it holds as it is read back.
func (b Prompts) normal() Prompts {
	n := Prompts{Head: normal(b.Head), Current: normal(b.Current)}
	for _, v := range b.Past {
		n.Past = append(n.Past, Version{Title: strings.Join(strings.Fields(v.Title), " "), Text: normal(v.Text)})
	}
	return n
}

func normal(text string) string { return joined(splitLines(text)) }

// joined are lines without the empty ones around them.
func joined(lines []string) string { return strings.Trim(strings.Join(lines, "\n"), "\n") }

// Next archives the prompt in use and puts another in its place. An empty one
// leaves the text as it is; a version it becomes all the same.
func (b Prompts) Next(prompt string, at time.Time) Prompts {
	prompt = normal(bounded(prompt))
	next := b.normal()
	next.Past = append(next.Past, Version{Title: fmt.Sprintf("%d - %s", b.Number()+1, at.UTC().Format(time.DateTime)), Text: next.Current})
	if strings.TrimSpace(prompt) != "" {
		next.Current = prompt
	}
	for len(next.Past) > 1 && len(next.Render()) > maxPrompts {
		next.Past = next.Past[1:] // the oldest goes; the numbers stay what they were
	}
	return next
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

// bounded is the beginning of a prompt that is too long.
func bounded(text string) string {
	if len(text) > maxPrompt {
		text = strings.ToValidUTF8(text[:maxPrompt], "")
	}
	return text
}

// Improved is the prompt in a model's answer. Asked for nothing but the prompt,
// models put it in a fence or a sentence before it all the same; what is not
// certainly such a frame stays. It is empty when there is none.
func Improved(text string) string {
	lines := splitLines(text)
	lines = strings.Split(joined(lines), "\n")
	if begins, inner, ends := fenced(lines); inner != nil && ends == len(lines)-1 && (begins == 0 || announced(lines[:begins])) {
		return joined(inner)
	}
	if len(lines) > 1 && announced(lines[:1]) {
		lines = lines[1:]
	}
	if len(lines) > 0 && title(lines[0]) {
		lines = lines[1:]
	}
	if text := joined(lines); strings.TrimSpace(text) != "" && !isPlaceholder(text) {
		return text
	}
	return ""
}

// fenced is the first fenced block whose end closes it, and where it stands.
func fenced(lines []string) (begins int, inner []string, ends int) {
	for i, line := range lines {
		mark := fence(line)
		if mark == "" {
			continue
		}
		for k := len(lines) - 1; k > i; k-- { // the last one: a prompt may hold fences of its own
			if strings.TrimSpace(lines[k]) == mark {
				return i, lines[i+1 : k], k
			}
		}
		return 0, nil, 0
	}
	return 0, nil, 0
}

// fence is the run of marks with which a line opens a block, "" for none.
func fence(line string) string {
	for _, mark := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, mark))]; len(run) >= 3 {
			return run
		}
	}
	return ""
}

// announced says that lines only say that the prompt follows.
func announced(lines []string) bool {
	text := strings.ToLower(joined(lines))
	return !strings.Contains(text, "\n") && len(text) < 160 && strings.HasSuffix(text, ":") && strings.Contains(text, "prompt") &&
		(strings.HasPrefix(text, "here") || strings.HasPrefix(text, "sure") || strings.HasPrefix(text, "the improved") || strings.HasPrefix(text, "improved"))
}

// title says that a line is the file's own heading, or one like it.
func title(line string) bool {
	switch strings.ToLower(strings.Trim(line, "#*: \t")) {
	case "current prompt", "improved prompt", "new prompt":
		return true
	}
	return false
}
