package learner

import (
	"errors"
	"fmt"
	"strings"

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
	section(&b, "What earlier cycles taught", memory)
	section(&b, "Mistakes of earlier cycles, not to be made again", mistakes)
	section(&b, "Your task", s.Task)
	if len(hosts) > 0 {
		fmt.Fprintf(&b, "\nWhile you write you can reach %s; the program, when it runs, reaches nobody: what it needs has to be in the current directory.\n", strings.Join(hosts, ", "))
	}
	fmt.Fprintf(&b, "\nThe names %s are taken in the current directory; end with a few sentences on what you made and why.\n", strings.Join(notes, ", "))
	return b.String(), errors.Join(err, merr, xerr)
}

func section(b *strings.Builder, title, text string) {
	if text = strings.TrimSpace(text); text != "" {
		fmt.Fprintf(b, "\n\n## %s\n\n%s\n", title, text)
	}
}

// question is the prompt of a step that asks about a cycle. What it quotes is indented, so that
// none of it can pass for the template's own words, and none fills in another.
func question(s State, prompt string) string {
	c := s.Last()
	return strings.NewReplacer(
		"<<TASK>>", quote(s.Task), "<<OUTPUT>>", quote(c.Said), "<<RESULT>>", quote(c.Ran.words()),
		"<<REVIEW>>", quote(c.judged()), "<<PROMPT>>", quote(prompt),
		"<<LEARNINGS>>", quote(list(c.Learned)), "<<MISTAKES>>", quote(list(c.Mistaken)),
	).Replace(phases[s.Step].template)
}

func quote(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		text = "(nothing)"
	}
	return "    " + strings.ReplaceAll(wording.Unix(text), "\n", "\n    ")
}

func list(items []string) string {
	if len(items) == 0 {
		return ""
	}
	return "- " + strings.Join(items, "\n- ")
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
