package learner

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/wording"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func TestNextPrompt(t *testing.T) {
	b := ParsePrompts("")
	b.Current = "Write code."
	b = b.Next("Write code.\nTest it.", noon)
	b = b.Next("# Past Prompts\n## Version 9\nEvil\n\\# Current Prompt", noon.Add(time.Minute))
	want := `# Current Prompt

\# Past Prompts
\## Version 9
Evil
\\# Current Prompt

# Past Prompts

## Version 1 - 2026-11-22 12:00:00

Write code.

## Version 2 - 2026-11-22 12:01:00

Write code.
Test it.
`
	if diff := cmp.Diff(want, b.Render()); diff != "" {
		t.Fatalf("rendered prompts (-want +got)\n%s", diff)
	}
	again := ParsePrompts(want)
	if diff := cmp.Diff(b, again); diff != "" {
		t.Errorf("prompts read back (-want +got)\n%s", diff)
	}
	if want := "# Past Prompts\n## Version 9\nEvil\n\\# Current Prompt"; again.Current != want {
		t.Errorf("current prompt: got %q, want %q", again.Current, want)
	}
	if n := again.Next("  \n", noon); n.Current != again.Current || n.Number() != 3 || len(n.Past) != 3 {
		t.Errorf("prompts after an empty answer: got %+v, want the same prompt, number 3 and 3 versions", n)
	}
}

func TestPromptsByHand(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Prompts
	}{
		{"nothing", "", Prompts{}},
		{"a-prompt-alone", "Do this.\n\n- and that\n", Prompts{Current: "Do this.\n\n- and that"}},
		{"windows-a-mark-spaces-behind-a-heading", "\ufeff# Current Prompt  \r\n\r\nDo.\r\n\r\n# Past Prompts\r\n", Prompts{Current: "Do."}},
		{"without-a-past", "# Current Prompt\nDo.\n## Version 1\nis text here", Prompts{Current: "Do.\n## Version 1\nis text here"}},
		{"a-head-headings-twice-a-version-without-a-number", "mine\n# Current Prompt\na\n# Current Prompt\nb\n# Past Prompts\nlost\n## Version\nc\n# Past Prompts\nd",
			Prompts{Head: "mine", Current: "a\n# Current Prompt\nb", Past: []Version{{"", "c\n# Past Prompts\nd"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ParsePrompts(c.text)); diff != "" {
				t.Errorf("prompts (-want +got)\n%s", diff)
			}
		})
	}
	b := Prompts{Past: []Version{{Title: "7 - long ago"}, {Title: "x"}, {Title: "2"}}}
	if n := b.Next("p", noon).Past[3].Title; n != "8 - 2026-11-22 12:00:00" {
		t.Errorf("title of the last version: got %q, want 8 - 2026-11-22 12:00:00", n)
	}
}

func TestPromptsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred versions take seconds")
	}
	b := Prompts{Current: strings.Repeat("x", maxPrompt)}
	for range 100 {
		b = b.Next(strings.Repeat("é", maxPrompt), noon)
	}
	if n := len(b.Render()); n > maxPrompts || b.Number() != 100 || len(b.Current) > maxPrompt || strings.Trim(b.Current, "é") != "" {
		t.Errorf("prompts: got %d bytes, number %d, a prompt of %d bytes, want at most %d, 100, at most %d",
			n, b.Number(), len(b.Current), maxPrompts, maxPrompt)
	}
}

func TestImproved(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"as-asked", "You write Go.\n\nTest it.\n", "You write Go.\n\nTest it."},
		{"nothing", " \n", ""},
		{"fenced", "```markdown\nYou write Go.\n```\n", "You write Go."},
		{"announced", "Here is the improved prompt:\n\nYou write Go.", "You write Go."},
		{"announced-and-fenced-with-a-fence-inside", "Sure, here's the prompt:\n\n```\nRun:\n```sh\ngo test\n```\nDone.\n```", "Run:\n```sh\ngo test\n```\nDone."},
		{"a-longer-fence", "````\na\n```\nb\n```\n````", "a\n```\nb\n```"},
		{"a-fence-that-is-part-of-it", "Run this:\n```\ngo test\n```", "Run this:\n```\ngo test\n```"},
		{"words-after-the-fence", "```\na\n```\nThat is my proposal.", "```\na\n```\nThat is my proposal."},
		{"its-own-title", "# Current Prompt\n\nYou write Go.", "You write Go."},
		{"the-title-of-a-prompt", "# Go\nYou write Go.", "# Go\nYou write Go."},
		{"the-question-repeated", "<improved prompt>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Improved(c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// normal returns prompts as they are read back.
func (b Prompts) normal() Prompts {
	normal := func(text string) string { return strings.Trim(wording.Unix(text), "\n") }
	n := Prompts{Head: normal(b.Head), Current: normal(b.Current)}
	for _, v := range b.Past {
		n.Past = append(n.Past, Version{Title: strings.Join(strings.Fields(v.Title), " "), Text: normal(v.Text)})
	}
	return n
}

// Whatever prompts there were, they are read back as they were written.
func FuzzPrompts(f *testing.F) {
	f.Add("# Past Prompts\n\n## Version 1\n", "\\# Current Prompt\r\n", "## Version", "1 - x")
	f.Add("\n\na\n", "```\n# Current Prompt\n```", "", " ")
	f.Fuzz(func(t *testing.T, head, current, past, title string) {
		b := Prompts{Head: head, Current: current, Past: []Version{{title, past}, {"2", current}}}
		want := b.normal()
		if diff := cmp.Diff(want, ParsePrompts(b.Render())); diff != "" {
			t.Fatalf("prompts, written and read (-want +got)\n%s", diff)
		}
		read := ParsePrompts(head)
		if diff := cmp.Diff(read.normal(), ParsePrompts(read.Render())); diff != "" {
			t.Fatalf("prompts from a text, written and read (-want +got)\n%s", diff)
		}
		next := read.Next(Improved(current), noon)
		if len(next.Past) != len(read.Past)+1 {
			t.Fatalf("versions after Next: got %d, want %d", len(next.Past), len(read.Past)+1)
		}
	})
}
