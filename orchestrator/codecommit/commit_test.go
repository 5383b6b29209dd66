package codecommit_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
	"abl/roles/model"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// lab is a project with a scripted model and build.
type lab struct {
	t       *testing.T
	root    string
	answers []model.Answer
	builds  []codecommit.Built
	asked   []string
	built   int
	said    strings.Builder
	run     codecommit.Run
}

const secret = "sk-of-the-lab-12zz"

func says(text string) model.Answer {
	n := int64(10)
	return model.Answer{Text: text, Finish: model.Whole, Body: []byte(`{"said":"` + secret + `"}`), Model: "fake", Tries: 1, Usage: usage.Count{Total: &n}}
}

func newLab(t *testing.T, protocol string, files map[string]string) *lab {
	t.Helper()
	l := &lab{t: t, root: t.TempDir()}
	p := codecommit.ProfileOf(protocol)
	all := map[string]string{p.Query: "Say bye.\n", p.Codebase: "--- a ---\nhi " + secret + "\n", "a": "hi\n", "gone": "g\n", ".gitignore": "/agent-config\n"}
	if p.System != "" {
		all[p.System] = "Mind the fences.\n"
	}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		at := filepath.Join(l.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, l.root, "", "init", "-q")
	secrets := redact.New(secret)
	g, err := codecommit.Project{Root: l.root, Profile: p, Logs: filepath.Join(l.root, "logs")}.Guard()
	if err != nil {
		t.Fatal(err)
	}
	in, err := codecommit.Project{Root: l.root, Profile: p}.ReadInputs(g.List())
	if err != nil {
		t.Fatal(err)
	}
	l.run = codecommit.Run{
		Project: codecommit.Project{Root: l.root, Profile: p, Logs: filepath.Join(l.root, "logs")}, Inputs: in, Model: l, Guard: g, Builder: l,
		Began: time.Date(2026, 11, 21, 10, 20, 30, 0, time.UTC), Book: book{ledger.Open(filepath.Join(l.root, "logs/tokens.csv"))},
		Repairs: p.Repairs, Secrets: secrets, Keys: &redact.Redactor{},
		Say:  func(text string) { fmt.Fprintln(&l.said, text) },
		Said: func(text string) { l.said.WriteString("> " + text) },
	}
	return l
}

// book is a ledger whose Append returns only an error.
type book struct{ *ledger.Ledger }

func (b book) Append(rows []ledger.Row) error {
	_, err := b.Ledger.Append(rows)
	return err
}

func (l *lab) Name() string { return "fake" }

// Ask returns the next answer, the last one forever. The question must be on disk by then.
func (l *lab) Ask(_ context.Context, prompt string, _ func([]byte) error) (model.Answer, error) {
	l.asked = append(l.asked, prompt)
	found := false
	for _, text := range l.logs() {
		found = found || text == prompt
	}
	if !found {
		l.t.Errorf("query %d when it is sent: got it in no log, want it on disk", len(l.asked))
	}
	a := l.answers[min(len(l.asked), len(l.answers))-1]
	if a.Finish == model.Blocked {
		return a, &model.Error{Kind: outcome.Filtered, What: "the answer was held back by fake (SAFETY)"}
	}
	return a, nil
}

func (l *lab) Build(context.Context) (codecommit.Built, error) {
	l.built++
	return l.builds[min(l.built, len(l.builds))-1], nil
}

// logs returns the files of the log folder.
func (l *lab) logs() map[string]string {
	all := map[string]string{}
	entries, err := os.ReadDir(l.run.Logs.Path)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(l.run.Logs.Path, e.Name()))
		if err != nil {
			l.t.Fatal(err)
		}
		all[e.Name()] = string(data)
	}
	return all
}

func (l *lab) file(name string) string {
	data, err := os.ReadFile(filepath.Join(l.root, name))
	if err != nil {
		return "-"
	}
	return string(data)
}

func (l *lab) commit() codecommit.Result {
	l.t.Helper()
	res, err := l.run.Commit(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return res
}

// outcomes returns a run in one line.
func outcomes(r codecommit.Result) string {
	var all []string
	for _, a := range r.Attempts {
		all = append(all, a.Name+" "+a.Outcome)
	}
	return r.Outcome + ": " + strings.Join(all, ", ")
}

var (
	red   = codecommit.Built{Code: 1, Stdout: "compiling\n", Stderr: "no " + secret + "\n"}
	green = codecommit.Built{Stderr: "warning\n"}
)

func TestGreenAtOnce(t *testing.T) {
	l := newLab(t, codecommit.V2, nil)
	l.answers = []model.Answer{says("^^^a\nbye\n^^^end\n^^^gone\n^^^delete\n^^^src/new\n^^^end\n")}
	l.builds = []codecommit.Built{green}
	if got := outcomes(l.commit()); got != "passed: initial-query passed" {
		t.Errorf("outcomes: got %s, want passed: initial-query passed", got)
	}
	if l.file("a") != "bye\n" || l.file("gone") != "-" || l.file("src/new") != "" {
		t.Errorf("a, gone and src/new: got %q, %q and %q, want %q, %q and %q",
			l.file("a"), l.file("gone"), l.file("src/new"), "bye\n", "-", "")
	}
	logs := l.logs()
	var names []string
	for name, text := range logs {
		names = append(names, name)
		if strings.Contains(text, secret) {
			t.Errorf("log %s: got the secret in it, want it removed", name)
		}
	}
	slices.Sort(names)
	want := "1-build.txt 1-query.txt 1-response.json 1-response.txt initial-build.txt initial-query-response.json initial-query-response.txt initial-query.txt run.json"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("logs: got %s, want %s", got, want)
	}
	if filepath.Base(l.run.Logs.Path) != "2026-11-21-10-20-30-committing-code" || logs["initial-query-response.json"] != `{"said":"[secret …zz]"}` ||
		logs["initial-build.txt"] != "EXIT CODE: 0\n\nSTDOUT:\n\nSTDERR:\nwarning\n" || logs["1-build.txt"] != logs["initial-build.txt"] {
		t.Errorf("got %q, want the warning in both logs of the build", logs)
	}
	if got := l.file("logs/tokens.csv"); !strings.Contains(got, ",1,committing-code,fake,,,,10,,,,unknown,api,2026-11-21-10-20-30-committing-code/initial-query,code-commit,") {
		t.Errorf("logs/tokens.csv: got %s, want a row of the initial query with 10 tokens", got)
	}
}

// The cost of a question is partly unknown if the provider may charge for a try without a response.
func TestLostTriesAreUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		usage usage.Count
		want  string
	}{
		"before an answer": {usage.Count{Total: new(int64(10))}, ",fake,,,,10,,,,unknown,api, ,fake,,,,,,,,unknown,none,"},
		"and no answer":    {usage.Count{}, ",fake,,,,,,,,unknown,none,"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, codecommit.V2, nil)
			l.answers = []model.Answer{says("^^^a\nbye\n^^^end\n")}
			l.answers[0].Lost, l.answers[0].Usage = true, c.usage
			l.builds = []codecommit.Built{green}
			l.commit()
			var got []string
			for _, row := range strings.Split(strings.TrimSpace(l.file("logs/tokens.csv")), "\n")[1:] {
				_, row, _ = strings.Cut(row, "committing-code")
				row, _, _ = strings.Cut(row, "2026")
				got = append(got, row)
			}
			if text := strings.Join(got, " "); text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// golden compares a prompt with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it)\n%s", name, diff)
	}
}

func TestPrompts(t *testing.T) {
	l := newLab(t, codecommit.V2, map[string]string{"agent-config/project-structure.txt": "A folder.\n"})
	l.answers = []model.Answer{
		says("^^^b\nfirst\n^^^end\n^^^a\nbye\n^^^end\n"), says("^^^build.sh\nexit 0\n^^^end\n"), says("^^^b\nsecond\n^^^end\n^^^gone\n^^^delete\n"), says("^^^c\n^^^end\n"),
	}
	l.builds = []codecommit.Built{red, red, green}
	if got, want := outcomes(l.commit()), "passed: initial-query red, repair-query-1 unusable, "+
		"repair-query-2 red, repair-query-3 passed"; got != want {
		t.Errorf("outcomes: got %s, want %s", got, want)
	}
	golden(t, "v2-initial.txt", l.asked[0])
	golden(t, "v2-repair-2.txt", l.asked[2])
	golden(t, "v2-repair-3.txt", l.asked[3])

	l = newLab(t, codecommit.V1, nil)
	l.answers = []model.Answer{
		says("&&&start\nHello!\n&&&end\n%%%start\nI guess.\n%%%end\n^^^a\nbye\n^^^end\n"), says("^^^.git/config\nx\n^^^end\n"), says("$$$start\nfine\n$$$end\n"),
	}
	l.builds = []codecommit.Built{red, red, green}
	l.run.Repairs = 2
	if got, want := outcomes(l.commit()), "red: query-1 red, query-2 unusable, query-3 red"; got != want {
		t.Errorf("outcomes: got %s, want %s", got, want)
	}
	golden(t, "v1-query-1.txt", l.asked[0])
	golden(t, "v1-query-3.txt", l.asked[2])
	if l.file("llm-user-output.txt") != "Hello!\n" || !strings.Contains(l.said.String(), "> Hello!") {
		t.Errorf("llm-user-output.txt and the printed text: got %q and %q, want Hello! in both",
			l.file("llm-user-output.txt"), l.said.String())
	}
	var names []string
	for name := range l.logs() {
		names = append(names, name)
	}
	slices.Sort(names)
	if got, want := strings.Join(names, " "), "final_error.txt "+
		"query-1-build.txt query-1-response.json query-1-response.txt query-1.txt "+
		"query-2-build.txt query-2-response.json query-2-response.txt query-2.txt "+
		"query-3-build.txt query-3-response.json query-3-response.txt query-3.txt run.json"; got != want {
		t.Errorf("logs: got %s, want %s", got, want)
	}
}

func TestNeverGreen(t *testing.T) {
	for protocol, want := range map[string]int{codecommit.V2: 4, codecommit.V1: 8} {
		l := newLab(t, protocol, nil)
		l.answers, l.builds = []model.Answer{says("^^^a\nbye\n^^^end\n")}, []codecommit.Built{red}
		if res := l.commit(); res.Outcome != codecommit.Red || l.built != want || len(l.asked) != want {
			t.Errorf("%s: got %s after %d builds and %d calls, want %s after %d of both",
				protocol, res.Outcome, l.built, len(l.asked), codecommit.Red, want)
		}
	}
}

// An invalid answer changes nothing and uses an attempt, and the model gets the reason.
func TestUnusable(t *testing.T) {
	cut := says("^^^a\nbye\n^^^end\n")
	cut.Finish, cut.Reason = model.Cut, "MAX_TOKENS"
	for _, c := range []struct {
		name   string
		answer model.Answer
		why    string
	}{
		{"no-file", says("I would rather not."), "changes no file"},
		{"no-end", says("^^^a\nbye\n"), "no ^^^end"},
		{"outside", says("^^^a\nbye\n^^^end\n^^^../x\n^^^end\n"), `"../x" may not be changed`},
		{"agent-config", says("^^^a\nbye\n^^^end\n^^^agent-config/query.txt\n^^^end\n"), "agent-config folder"},
		{"cut-off", cut, "cut off (MAX_TOKENS)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, codecommit.V2, nil)
			l.answers, l.builds = []model.Answer{c.answer, says("^^^a\nbye\n^^^end\n")}, []codecommit.Built{green}
			if got := outcomes(l.commit()); got != "passed: initial-query unusable, repair-query-1 passed" || l.built != 1 {
				t.Errorf("got %s after %d builds, want an unusable query, then a pass", got, l.built)
			}
			if !strings.Contains(l.asked[1], "[build.sh output]\nThe answer could not be used") || !strings.Contains(l.asked[1], c.why) || strings.Contains(l.asked[1], "FILE REPLACEMENT") {
				t.Errorf("end of the second query: got %q, want the reason %q and no FILE REPLACEMENT",
					l.asked[1][len(l.asked[0])-100:], c.why)
			}
			l = newLab(t, codecommit.V2, nil)
			l.answers, l.run.Abort = []model.Answer{c.answer}, true
			if res := l.commit(); res.Outcome != codecommit.Unusable || l.built != 0 || l.file("a") != "hi\n" || !strings.Contains(l.logs()["final_error.txt"], c.why) {
				t.Errorf("with abort: got %+v, want %s and no build", res, codecommit.Unusable)
			}
		})
	}
	l := newLab(t, codecommit.V2, nil)
	blocked := says("")
	blocked.Finish, blocked.Reason = model.Blocked, "SAFETY"
	l.answers = []model.Answer{blocked}
	var held *environment.Error
	if _, err := l.run.Commit(t.Context()); !errors.As(err, &held) || held.Class != environment.Refused || len(l.asked) != 1 {
		t.Errorf("got %v after %d requests, want %s after one", err, len(l.asked), environment.Refused)
	}
	if got := l.logs()["initial-query-response.txt"]; !strings.HasPrefix(got, "ERROR\nthe answer was held back by fake (SAFETY)") {
		t.Errorf("initial-query-response.txt: got %q, want an error that names SAFETY", got)
	}
}

func TestDryRun(t *testing.T) {
	l := newLab(t, codecommit.V2, nil)
	l.answers, l.run.DryRun = []model.Answer{says("^^^a\nbye\n^^^end\n")}, true
	if got := outcomes(l.commit()); got != "planned: initial-query planned" || l.built != 0 || l.file("a") != "hi\n" {
		t.Errorf("dry run: got %s after %d builds with %q in a, want it planned, no build and no change",
			got, l.built, l.file("a"))
	}
}

func TestFolders(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, want := range []string{"2026-01-02-03-04-05-x", "2026-01-02-03-04-05-x-2", "2026-01-02-03-04-05-x-3"} {
		f, err := codecommit.NewFolder(dir, now, "-x", &redact.Redactor{})
		if err != nil || filepath.Base(f.Path) != want {
			t.Errorf("NewFolder: got %v, %v, want the name %s", f, err, want)
		}
	}
	f, _ := codecommit.NewFolder(dir, now, "-y", &redact.Redactor{})
	for in, want := range map[string]string{`{"a": 1}` + "\n": `{"a": 1}` + "\n", "<html>": `{"not_json":"\u003chtml\u003e"}` + "\n", "": `{"not_json":""}` + "\n"} {
		err := f.Body([]byte(in), "b.json")
		data, _ := os.ReadFile(filepath.Join(f.Path, "b.json"))
		if err != nil || string(data) != want {
			t.Errorf("Body(%q): got %q, %v, want %q", in, data, err, want)
		}
	}
}

func TestCheckIgnored(t *testing.T) {
	for text, want := range map[string]string{
		"/agent-config\n": "", "x\n/agent-config/\r\n": "", "agent-config": "", "agent-config/ \n": "", "!agent-config\n/agent-config\n": "", "/agent-config\n!*.go\n!/src\n": "",
		"": "no line /agent-config", "#/agent-config\n": "no line", "agent-config2\n": "no line", "/agent-config/*\n": "no line",
		"/agent-config\n!/agent-config\n": "line 2", "agent-config\n!agent-config/\n": "line 2", "/agent-config\n!agent-config/query.txt\n": "line 2", "/agent-config\n!agent*\n": "line 2", "/agent-config\n!*\n": "line 2", "!*\n": "line 1",
		"/agent-config\n!?gent-config\n": "line 2", "/agent-config\n![a]gent-config/\n": "line 2", "/agent-config\n!**/agent-config\n": "line 2", "/agent-config\n!agent-?\n": "",
	} {
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		err := codecommit.Project{Root: root}.CheckIgnored()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error for .gitignore %q: got %v, want one with %q, none if empty", text, err, want)
		}
	}
	if err := (codecommit.Project{Root: t.TempDir()}).CheckIgnored(); err == nil {
		t.Error("CheckIgnored without .gitignore: got no error, want one")
	}
}

func TestMissingInputs(t *testing.T) {
	for _, name := range []string{codecommit.V1, codecommit.V2} {
		p := codecommit.ProfileOf(name)
		_, err := codecommit.Project{Root: t.TempDir(), Profile: p}.ReadInputs(nil)
		if err == nil || err.Error() != "cannot find "+p.Query+", the query" {
			t.Errorf("error of ReadInputs for %s: got %v, want one that names %s", name, err, p.Query)
		}
	}
}

func TestReport(t *testing.T) {
	l := newLab(t, codecommit.V2, nil)
	text := "Here it is.\n\n1. User Specification Self Consistency\n\nFine " + secret + ".\n\n## **Suggestions and Other Important Commentary:**\nNone.\nNo User Specification Self Consistency here.\n"
	l.answers = []model.Answer{says(text)}
	path := filepath.Join(l.root, "agent-config/consistency-report.txt")
	l.run.Inputs = codecommit.Inputs{Codebase: "code\n"}
	res, printed, err := l.run.Consistency(t.Context(), path)
	if err != nil || res.Outcome != codecommit.Reported || len(res.Missing) != 3 {
		t.Fatalf("Consistency: got %+v, %v, want %s with 3 missing parts", res, err, codecommit.Reported)
	}
	if want := strings.ReplaceAll(text, secret, "[secret …zz]"); l.file("agent-config/consistency-report.txt") != want || printed != want {
		t.Errorf("got %q, want %q", printed, want)
	}
	golden(t, "report.json", l.file("agent-config/consistency-report.json"))
	golden(t, "consistency-query.txt", l.logs()["query.txt"])
}

// An error of the guard's checks is not the model's mistake: the model is not asked to fix it.
func TestBlindGuard(t *testing.T) {
	l := newLab(t, codecommit.V2, nil)
	t.Setenv("PATH", "/nowhere") // without git
	l.answers = []model.Answer{says("^^^a\nbye\n^^^end\n")}
	if res, err := l.run.Commit(t.Context()); !errors.Is(err, exec.ErrNotFound) || res.Outcome != codecommit.Failed || len(l.asked) != 1 || l.file("a") != "hi\n" {
		t.Errorf("commit without git: got %+v, %v after %d queries with %q in a, want %s, %v after one and no change",
			res, err, len(l.asked), l.file("a"), codecommit.Failed, exec.ErrNotFound)
	}
}

// An answer without edits touches no file: an existing stage would make it fail.
func TestNoEditsAreNotApplied(t *testing.T) {
	l := newLab(t, codecommit.V1, nil)
	if err := os.MkdirAll(filepath.Join(l.root, l.run.Project.Stage()), 0o755); err != nil {
		t.Fatal(err)
	}
	l.answers, l.builds = []model.Answer{says("$$$start\nfine\n$$$end\n")}, []codecommit.Built{{}}
	if _, err := l.run.Commit(t.Context()); err != nil || l.built != 1 {
		t.Errorf("answer without edits: got %d builds, %v, want one and no error", l.built, err)
	}
}
