package learner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"abl/internal/wording"
)

// maxResult is the largest length of the program's output in later prompts, in characters.
const maxResult = 500

// prompt returns the prompt of a step. That of a cycle is the current prompt, the lessons of earlier
// cycles, and the task.
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
		{"What earlier cycles taught", memory}, {"Mistakes of earlier cycles, not to be repeated", mistakes}, {"Your task",
			s.Task},
	} {
		if text := strings.TrimSpace(part[1]); text != "" {
			fmt.Fprintf(&b, "\n\n## %s\n\n%s\n", part[0], text)
		}
	}
	if len(hosts) > 0 {
		fmt.Fprintf(&b, "\nWhile you write you can reach %s. The program has no network when it runs: "+
			"put what it needs into the current directory.\n", strings.Join(hosts, ", "))
	}
	fmt.Fprintf(&b, "\nDo not use the names %s in the current directory. End with a few sentences on what you made and "+
		"why.\n", strings.Join(notes, ", "))
	return b.String(), errors.Join(err, merr, xerr)
}

// question returns the prompt of a step that asks about a cycle. Quoted texts are indented, so that
// they cannot be mistaken for the template, and placeholders in them are not replaced.
func question(s State, prompt string) string {
	c := s.Last()
	return strings.NewReplacer(
		"<<TASK>>", quote(s.Task), "<<OUTPUT>>", quote(c.Said), "<<RESULT>>", quote(c.Ran.text()),
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

// judged returns the review of a cycle, or why it failed.
func (c Cycle) judged() string {
	switch {
	case c.Failure != "":
		return "There is no review, because " + c.Failure
	case c.Review == nil:
		return "The reviewer did not answer."
	}
	return c.Review.Summary()
}

// text describes how the program ran.
func (r *Ran) text() string {
	if r == nil {
		return "It was not started."
	}
	text := r.Summary()
	if out := strings.TrimSpace(r.Output); out != "" {
		text += "\nIt printed:\n" + wording.Cut(out, maxResult)
	}
	return text
}

// Summary describes in one sentence how the program ran.
func (r *Ran) Summary() string {
	switch {
	case r.Running && r.Ports != "":
		return fmt.Sprintf("It was still running after %s and listened on port %s.", RunTime,
			strings.ReplaceAll(r.Ports, " ", " and "))
	case r.Running:
		return fmt.Sprintf("It was still running after %s and listened on no port.", RunTime)
	case r.OK:
		return "It ended with exit code 0."
	}
	return "It failed: " + r.Reason + "."
}

// Prompts is the content of prompts.md: the current prompt, and below it every earlier one with its
// number and time. A line of a prompt that equals one of the file's headings is escaped with a
// backslash, which Markdown does not show.
type Prompts struct {
	Head    string // the user's text above the first heading
	Current string
	Past    []Version // the oldest first
}

// Version is an earlier prompt.
type Version struct {
	Title string // "1 - 2026-11-22 01:02:03", or the user's own text
	Text  string
}

const (
	maxPrompt  = 32 << 10 // bytes
	maxPrompts = 2 << 20  // of the file

	currentHeading = "# Current Prompt"
	pastHeading    = "# Past Prompts"
)

// heading matches a line that divides the file, and its escaped form.
var heading = regexp.MustCompile(`(?m)^(\\*)(# Current Prompt|# Past Prompts|## Version(?: .*)?)[ \t]*$`)

// ParsePrompts parses prompts.md. It accepts any text: without headings the text is the prompt.
func ParsePrompts(text string) (b Prompts) {
	text = wording.Unix(text)
	part, from, began, inPast := &b.Head, 0, false, false
	for _, at := range heading.FindAllStringSubmatchIndex(text, -1) {
		title := text[at[4]:at[5]]
		version, isVersion := strings.CutPrefix(title, "## Version")
		escaped, again := at[2] < at[3], began && title == currentHeading || inPast && title == pastHeading
		if escaped || again || isVersion && !inPast {
			continue // it does not divide the file
		}
		*part, from = unescape(text[from:at[0]]), at[1]
		switch {
		case isVersion:
			b.Past = append(b.Past, Version{Title: strings.TrimSpace(version)})
			part = &b.Past[len(b.Past)-1].Text
		case title == currentHeading:
			part, began = &b.Current, true
		default:
			// Text before the first version is ignored.
			part, inPast = new(string), true
		}
	}
	*part = unescape(text[from:])
	if !began {
		b.Head, b.Current = "", b.Head
	}
	return b
}

// escape escapes the headings in a text and removes empty lines around it.
func escape(text string) string {
	return strings.Trim(heading.ReplaceAllString(wording.Unix(text), `\$0`), "\n")
}

// unescape is the inverse of escape.
func unescape(text string) string {
	plain := func(line string) string { return strings.TrimPrefix(line, `\`) }
	return strings.Trim(heading.ReplaceAllStringFunc(text, plain), "\n")
}

// Render returns the text of prompts.md. ParsePrompts returns the same prompts.
func (b Prompts) Render() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n\n%s\n\n%s\n\n%s\n", escape(b.Head), currentHeading, escape(b.Current), pastHeading)
	for _, v := range b.Past {
		fmt.Fprintf(&s, "\n%s\n\n%s\n", wording.OneLine("## Version "+v.Title), escape(v.Text))
	}
	// Without a head it begins with the heading.
	return strings.TrimLeft(s.String(), "\n")
}

// Next archives the current prompt and replaces it. An empty prompt does not replace the current
// one, but adds a version.
func (b Prompts) Next(prompt string, at time.Time) Prompts {
	b.Past = append(slices.Clone(b.Past), Version{Title: fmt.Sprintf("%d - %s", b.Number()+1,
		at.UTC().Format(time.DateTime)), Text: b.Current})
	if strings.TrimSpace(prompt) != "" {
		b.Current = strings.ToValidUTF8(prompt[:min(len(prompt), maxPrompt)], "")
	}
	for len(b.Past) > 1 && len(b.Render()) > maxPrompts {
		b.Past = b.Past[1:] // drop the oldest version; numbers do not change
	}
	return b
}

// Number returns the number of the last archived version, or 0.
func (b Prompts) Number() int {
	most := 0
	for _, v := range b.Past {
		var n int
		// Titles without a number are ignored.
		_, _ = fmt.Sscanf(v.Title, "%d", &n)
		most = max(most, n)
	}
	return most
}

// Improved returns the prompt in a model's answer, or "". Models put a sentence or a title before it,
// or a fence around it, even if they are asked for the prompt only.
func Improved(text string) string {
	lines := strings.Split(wording.Unix(strings.TrimSpace(text)), "\n")
	for len(lines) > 1 && (preface.MatchString(lines[0]) || lines[0] == "") {
		lines = lines[1:]
	}
	last := len(lines) - 1
	if mark := fence.FindString(lines[0]); mark != "" && last > 0 && lines[last] == mark {
		lines = lines[1:last]
	}
	text = strings.Trim(strings.Join(lines, "\n"), "\n")
	if strings.TrimSpace(text) == "" || isPlaceholder(text) {
		return ""
	}
	return text
}

var (
	// preface matches a line that announces the prompt, or the file's own heading.
	preface = regexp.MustCompile(`(?i)^((here|sure|the improved|improved)\b.{0,120}\bprompt.{0,40}:|[#* ]*(current|improved|new) prompt[*: ]*)$`)
	fence   = regexp.MustCompile("^(```+|~~~+)")
)
