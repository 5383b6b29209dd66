package learner

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/lazyregexp"
	"abl/internal/wording"
)

// maxResult bounds what the program printed in the prompts that follow, in runes.
const maxResult = 500

// prompt is what the agent is asked in a step. That of a cycle is the prompt in use,
// what earlier cycles taught, and the task.
func (h Home) prompt(s State, hosts []string) (string, error) {
	all, err := h.Prompts()
	if s.Step != Generate {
		return question(s, all.Current), err
	}
	memory, merr := h.Text(MemoryFile)
	mistakes, xerr := h.Text(MistakesFile)
	var b strings.Builder
	b.WriteString(strings.TrimSpace(all.Current))
	for _, part := range [][2]string{
		{"What earlier cycles taught", memory}, {"Mistakes of earlier cycles, not to be made again", mistakes}, {"Your task", s.Task},
	} {
		if text := strings.TrimSpace(part[1]); text != "" {
			fmt.Fprintf(&b, "\n\n## %s\n\n%s\n", part[0], text)
		}
	}
	if len(hosts) > 0 {
		fmt.Fprintf(&b, "\nWhile you write you can reach %s; the program, when it runs, reaches nobody: what it needs has to be in the current directory.\n", strings.Join(hosts, ", "))
	}
	fmt.Fprintf(&b, "\nThe names %s are taken in the current directory; end with a few sentences on what you made and why.\n", strings.Join(notes, ", "))
	return b.String(), errors.Join(err, merr, xerr)
}

// question is the prompt of a step that asks about a cycle. What it quotes is indented, so that
// none of it can pass for the template's own words, and none fills in another.
func question(s State, prompt string) string {
	c := s.Last()
	return strings.NewReplacer(
		"<<TASK>>", quote(s.Task), "<<OUTPUT>>", quote(c.Said), "<<RESULT>>", quote(c.Ran.words()),
		"<<REVIEW>>", quote(c.judged()), "<<PROMPT>>", quote(prompt),
		"<<LEARNINGS>>", quote(strings.Join(c.Learned, "\n")), "<<MISTAKES>>", quote(strings.Join(c.Mistaken, "\n")),
	).Replace(phases[s.Step].template)
}

func quote(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		text = "(nothing)"
	}
	return "    " + strings.ReplaceAll(wording.Unix(text), "\n", "\n    ")
}

// judged is what is known of a cycle's worth; of a failed one, why it failed.
func (c Cycle) judged() string {
	switch {
	case c.Failure != "":
		return "There is no review, because " + c.Failure
	case c.Review == nil:
		return "The reviewer did not answer."
	}
	return c.Review.Summary()
}

// words tell how the program did.
func (r *Ran) words() string {
	if r == nil {
		return "It was not started."
	}
	text := r.Summary()
	if out := strings.TrimSpace(r.Output); out != "" {
		text += "\nIt printed:\n" + wording.Cut(out, maxResult)
	}
	return text
}

// Summary is one sentence.
func (r *Ran) Summary() string {
	switch {
	case r.Running && r.Ports != "":
		return fmt.Sprintf("It was still running after %s and listened on port %s.", RunTime, strings.ReplaceAll(r.Ports, " ", " and "))
	case r.Running:
		return fmt.Sprintf("It was still running after %s and listened on no port.", RunTime)
	case r.OK:
		return "It ended with exit code 0."
	}
	return "It failed: " + r.Reason + "."
}

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

const (
	maxPrompt  = 32 << 10 // bytes
	maxPrompts = 2 << 20  // of the file

	currentHeading = "# Current Prompt"
	pastHeading    = "# Past Prompts"
)

// heading is a line that divides the file, or did before it was escaped.
var heading = lazyregexp.New(`(?m)^(\\*)(# Current Prompt|# Past Prompts|## Version(?: .*)?)[ \t]*$`)

// ParsePrompts reads prompts.md. It takes any text: one without the headings is a
// prompt that a person wrote.
func ParsePrompts(text string) (b Prompts) {
	text = wording.Unix(text)
	part, from, began, inPast := &b.Head, 0, false, false
	for _, at := range heading().FindAllStringSubmatchIndex(text, -1) {
		title := text[at[4]:at[5]]
		version, isVersion := strings.CutPrefix(title, "## Version")
		escaped, again := at[2] < at[3], began && title == currentHeading || inPast && title == pastHeading
		if escaped || again || isVersion && !inPast {
			continue // it divides nothing
		}
		*part, from = unescape(text[from:at[0]]), at[1]
		switch {
		case isVersion:
			b.Past = append(b.Past, Version{Title: strings.TrimSpace(version)})
			part = &b.Past[len(b.Past)-1].Text
		case title == currentHeading:
			part, began = &b.Current, true
		default:
			// What stands before the first version is no prompt.
			part, inPast = new(string), true
		}
	}
	*part = unescape(text[from:])
	if !began {
		b.Head, b.Current = "", b.Head
	}
	return b
}

// escape is a text without the empty lines around it, its headings escaped.
func escape(text string) string {
	return strings.Trim(heading().ReplaceAllString(wording.Unix(text), `\$0`), "\n")
}

// unescape is its inverse.
func unescape(text string) string {
	plain := func(line string) string { return strings.TrimPrefix(line, `\`) }
	return strings.Trim(heading().ReplaceAllStringFunc(text, plain), "\n")
}

// Render writes prompts.md. What it writes reads back as the same prompts.
func (b Prompts) Render() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\n%s\n\n%s\n\n%s\n", escape(b.Head), currentHeading, escape(b.Current), pastHeading)
	for _, v := range b.Past {
		fmt.Fprintf(&s, "\n%s\n\n%s\n", wording.OneLine("## Version "+v.Title), escape(v.Text))
	}
	// Without a head it begins with the heading.
	return strings.TrimLeft(s.String(), "\n")
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
		// A title without a number counts for nothing.
		_, _ = fmt.Sscanf(v.Title, "%d", &n)
		most = max(most, n)
	}
	return most
}

// Improved is the prompt in a model's answer, "" when there is none. Asked for nothing
// but the prompt, models put a sentence or a title before it, or a fence around it, all the same.
func Improved(text string) string {
	lines := strings.Split(wording.Unix(strings.TrimSpace(text)), "\n")
	for len(lines) > 1 && (preface().MatchString(lines[0]) || lines[0] == "") {
		lines = lines[1:]
	}
	last := len(lines) - 1
	if mark := fence().FindString(lines[0]); mark != "" && last > 0 && lines[last] == mark {
		lines = lines[1:last]
	}
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if strings.TrimSpace(text) == "" || isPlaceholder(text) {
		return ""
	}
	return text
}

var (
	// preface is a line that only says that the prompt follows, or the file's own heading.
	preface = lazyregexp.New(`(?i)^((here|sure|the improved|improved)\b.{0,120}\bprompt.{0,40}:|[#* ]*(current|improved|new) prompt[*: ]*)$`)
	fence   = lazyregexp.New("^(```+|~~~+)")
)
