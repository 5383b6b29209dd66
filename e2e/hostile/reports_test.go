package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// ruling is one way in which a Verifier may leave its files. Each is a separate call with its own
// verdict.
type ruling struct {
	id, what string
	script   string // run in the tests directory at the end of the call; "" means testdata/verifiers/ID.sh
	report   string // "" writes the run report, "none" leaves it out
	verdict  string
	why      string // in the text of the verdict
}

const (
	unverified = "unverified"
	fail       = "fail"
	unreadable = "is not a readable plain file"
	tooLarge   = "is larger than 256 KiB, which is more than abl reads"
	noEntry    = "has no complete entry"
	noReport   = "the run report of this call is missing"
)

// Group A: files that the Verifier leaves where abl reads its verdict. None of them leads to a
// pass, and abl reads only regular files of the workspace.
func rulings() []ruling {
	return []ruling{
		{
			id:      "A01",
			what:    "a link to the user's secrets",
			script:  "ln -s ../../.env failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{id: "A01-abs", what: "a link to the secrets by the host's path", verdict: unverified, why: unreadable},
		{
			id:      "A02",
			what:    "a link to abl's own environment",
			script:  "ln -s /proc/self/environ failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{id: "A02-chain", what: "a link to a link to a good file", verdict: unverified, why: unreadable},
		{
			id:      "A02-spec",
			what:    "a link to a spec",
			script:  "ln -s /workspace/specs/phase1.md failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{id: "A03", what: "a FIFO", script: "mkfifo failed_specs.md", verdict: unverified, why: unreadable},
		{
			id:      "A04",
			what:    "a link to an endless device",
			script:  "ln -s /dev/zero failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{
			id:      "A04-tty",
			what:    "a link to the user's terminal",
			script:  "ln -s /dev/tty failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{
			id:      "A04-socket",
			what:    "a socket",
			script:  "$PWD/attacker socket $PWD/failed_specs.md",
			verdict: unverified,
			why:     unreadable,
		},
		{
			id:      "A05",
			what:    "a sparse file of gigabytes",
			script:  "truncate -s 1900M failed_specs.md",
			verdict: unverified,
			why:     tooLarge,
		},
		{id: "A06", what: "entries beyond the size limit, not truncated", verdict: unverified, why: tooLarge},
		{id: "A08", what: "a directory", verdict: unverified, why: unreadable},
		{id: "A08-shut", what: "a directory without permissions", verdict: unverified, why: unreadable},
		{
			id:      "A08-deep",
			what:    "directories nested beyond the maximum path length",
			verdict: unverified,
			why:     unreadable,
		},
		{id: "A12", what: "a label without an entry", verdict: unverified, why: noEntry},
		{id: "A12-words", what: "text that claims a pass", verdict: unverified, why: noEntry},
		{id: "A12-fence", what: "an entry in a block that shows the format", verdict: unverified, why: noEntry},
		{id: "A12-wide", what: "look-alike letters", verdict: unverified, why: noEntry},
		{id: "A12-nul", what: "UTF-16, as some editors write", verdict: unverified, why: noEntry},
		{id: "A13", what: "a million empty lines", verdict: unverified, why: tooLarge},
		{id: "A17", what: "a hundred thousand reports", report: "none", verdict: unverified, why: noReport},
		{id: "A18", what: "reports that are links", report: "none", verdict: unverified, why: noReport},
		{id: "A18-out", what: "a report that links outside", report: "none", verdict: unverified, why: noReport},
		{id: "A18-fifo", what: "reports that are FIFOs", report: "none", verdict: unverified, why: noReport},
		{
			id:      "A18-big",
			what:    "an empty report, and huge ones of other names",
			report:  "none",
			verdict: unverified,
			why:     noReport,
		},
		{
			id:      "A15",
			what:    "no file, with that of the previous call in place",
			script:  ":",
			report:  "none",
			verdict: unverified,
			why:     noReport,
		},
		{id: "F18", what: "a report with false claims", report: "none", verdict: unverified, why: noEntry},

		{
			id:      "A07",
			what:    "bytes that are not text",
			script:  `printf 'SPEC: \377\376\000x\nINPUT: \033[2Jy\nOBSERVED: z\302\233\n' > failed_specs.md`,
			verdict: fail,
			why:     "1 contract fails",
		},
		{id: "A11", what: "a second name for the same file", verdict: fail, why: "1 contract fails"},
		{
			id:      "A12-dress",
			what:    "CRLF, a byte order mark, emphasis and bullets",
			script:  `printf '\357\273\277- **SPEC:** a\r\n- **INPUT:** b\r\n- **OBSERVED:** c\r\n' > failed_specs.md`,
			verdict: fail,
			why:     "1 contract fails",
		},
		{id: "A14", what: "a program that removes the file later", verdict: fail, why: "1 contract fails"},
		{
			id:      "F04",
			what:    "more than a failed contract, between the entries and in them",
			verdict: fail,
			why:     "100 contracts fail",
		},
		{id: "F04-long", what: "a field that contains a program", verdict: fail, why: "1 contract fails"},
		{id: "F05", what: "text for the Builder that ends its own quotation", verdict: fail, why: "1 contract fails"},
	}
}

func TestVerdictsOfHostileVerifiers(t *testing.T) {
	lab.Long(t)
	s := newScene(t, "limits: {memory: 512m}\n"+
		"loop: {call_timeout: 120s, max_verifier_iterations: 60, no_progress: {unverified: 0}}\n")
	all := rulings()
	calls, keys := schedule(t, all)
	s.script(append(calls, builds(), verifies())...)
	r := s.play(0)
	verdicts := of(events(t, r), state.Verdict)
	if len(verdicts) != len(all)+1 {
		t.Fatalf("got %d verdicts, want %d, one per call:\n%s", len(verdicts), len(all)+1, lastLines(r.Stderr, 5))
	}
	for i, c := range all {
		t.Run(c.id, func(t *testing.T) {
			if v := verdicts[i]; v.Verdict != c.verdict || !strings.Contains(v.Text, c.why) {
				t.Errorf("%s: got %s (%s), want %s (%s)", c.what, v.Verdict, v.Text, c.verdict, c.why)
			}
			if out := s.Printed(keys[i]); strings.Contains(out, "HOLE") || !strings.Contains(out, "tried") {
				t.Errorf("%s: got %s, want tried, and no HOLE", c.what, out)
			}
		})
	}
	s.checkPrompts(t, keys, all)
}

// schedule assigns each ruling to a call. A call without a verdict is followed by another one of
// the same iteration, once.
func schedule(t *testing.T, all []ruling) (calls []agent.ScriptCall, keys []string) {
	t.Helper()
	iteration, attempt := 1, 1
	for _, c := range all {
		script := c.script
		if script == "" {
			script = lab.File(t, "verifiers/"+c.id+".sh")
		}
		steps := []agent.Step{run(lab.File(t, "verifiers/begin.sh") + script + "\necho tried")}
		if c.report == "" {
			steps = append(steps, report())
		}
		call := call("verifier", append([]agent.Step{write("run.sh", suite, "0755")}, steps...)...)
		call.Iteration, call.Attempt = iteration, attempt
		calls, keys = append(calls, call), append(keys, fmt.Sprintf("p1-verify-%d.%d", iteration, attempt))
		if c.verdict == unverified && attempt == 1 {
			attempt = 2
		} else {
			iteration, attempt = iteration+1, 1
		}
	}
	return calls, keys
}

// checkPrompts checks that the Builder's prompts contain only the entries, within the limits and
// between marks, and nothing from around them.
func (s *scene) checkPrompts(t *testing.T, keys []string, all []ruling) {
	t.Helper()
	prompts, err := filepath.Glob(filepath.Join(s.Dir, ".abl/logs/calls/p1-build-*/in/prompt.md"))
	if err != nil || len(prompts) < 8 {
		t.Fatalf("got %d prompts, error %v, want 8 or more", len(prompts), err)
	}
	for _, path := range prompts {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		lacks(t, filepath.Base(filepath.Dir(filepath.Dir(path))), text, "HINT-BETWEEN", "HINT-AFTER", "TAIL-OF-FIELD",
			"contract 101\n")
		if at := oddAt(text); at >= 0 {
			t.Errorf("got prompt %q, want only graphic characters", text[max(0, at-40):at+20])
		}
		if len(text) > 64<<10 {
			t.Errorf("%s: got %d bytes, want %d or fewer", path, len(text), 64<<10)
		}
	}
	next := func(id string) string {
		for i, c := range all {
			if c.id == id {
				var step int
				fmt.Sscanf(keys[i], "p1-verify-%d", &step)
				return s.Read(fmt.Sprintf(".abl/logs/calls/p1-build-%d.1/in/prompt.md", step+1))
			}
		}
		t.Fatalf("got no ruling with the id %s, want one", id)
		return ""
	}
	wants(t, "the prompt after F04", next("F04"), "contract 100\n")
	wants(t, "the prompt after F04-long", next("F04-long"), "[cut]")
	checkFenced(t, next("F05"), "New orders")
}

// checkFenced checks that a text of the other role is between two marks that the role could not
// predict.
func checkFenced(t *testing.T, prompt, text string) {
	t.Helper()
	before, after, found := strings.Cut(prompt, text)
	if !found {
		t.Fatalf("the prompt: got no %q, want a quotation with it", text)
	}
	open := strings.LastIndex(before, "[")
	for open >= 0 && !hasMark(before[open:]) {
		open = strings.LastIndex(before[:open], "[")
	}
	if open < 0 {
		t.Fatalf("got no mark before %q, want one:\n%s", text, prompt)
	}
	mark := markIn(before[open:])
	if !strings.Contains(after, mark) {
		t.Errorf("got no second mark %q after the quotation, want one:\n%s", mark, after)
	}
}

func hasMark(line string) bool { return markIn(line) != "" }

// markIn returns the random part of a mark at the start of a text.
func markIn(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '[' || r == ']' }) {
		if len(word) == 26 && strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == "" {
			return word
		}
	}
	return ""
}
