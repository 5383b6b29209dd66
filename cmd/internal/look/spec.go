package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/audit"
	"abl/internal/helper"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/witness"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/orchestrator/evidence"
)

// SpecCommand returns `abl spec`.
func SpecCommand() cli.Command {
	var strict, explain bool
	return cli.Command{
		Name:  "spec",
		Group: cli.Inspecting,
		Usage: "check the specs, and show the result of each contract",
		Subs: []cli.Command{
			{
				Name:  "lint",
				Args:  "[N]",
				Usage: "find vague, missing, duplicate and contradictory contracts",
				Long: `Checks the specs of all phases, or of phase N. An error stops a phase before it costs
anything, a warning does not. docs/specs.md explains the codes.`,
				Examples: "abl spec lint\nabl spec lint 2 --json",
				Flags:    []cli.Flag{cli.JSONFlag(), {Name: "strict", To: &strict, Usage: "end with exit code 2 on warnings too"}},
				Run: project.Looking(func(_ context.Context, s *project.Project) error {
					return runSpecLint(s, strict)
				}),
			},
			draftCommand(),
			{
				Name:  "list",
				Usage: "show every contract, its id and its last result in each phase",
				Long: `With --explain it shows how abl reads each contract: the request, the statuses, the
parts of the response that abl compares, and the values that may be anything. The tests
must send that request and get that response (docs/evidence.md). Only the Verifier's
tests check the rest of a contract.`,
				Examples: "abl spec list\nabl spec list --explain",
				Flags:    []cli.Flag{cli.JSONFlag(), {Name: "explain", To: &explain, Usage: "show how abl reads each contract"}},
				Run: project.Looking(func(_ context.Context, s *project.Project) error {
					return runSpecList(s, explain)
				}),
			},
		},
	}
}

// lintReport is what `abl spec lint --json` prints.
type lintReport struct {
	Phases    int           `json:"phases"`
	Contracts int           `json:"contracts"`
	Errors    int           `json:"errors"`
	Warnings  int           `json:"warnings"`
	Problems  []lintProblem `json:"problems"`
}

// lintProblem is one problem of a spec.
type lintProblem struct {
	Code       string `json:"code"`  // of docs/specs.md
	Level      string `json:"level"` // error or warning
	File       string `json:"file"`  // relative to the project
	Line       int    `json:"line,omitempty"`
	Phase      int    `json:"phase,omitempty"`
	Contract   string `json:"contract,omitempty"`
	Text       string `json:"text"`
	Suggestion string `json:"suggestion,omitempty"`
}

func runSpecLint(s *project.Project, strict bool) (err error) {
	in, only := s.In, 0
	if len(in.Args) > 0 {
		if only, err = project.Number(in.Args[0]); err != nil {
			return err
		}
	}
	all, err := lint(s, s.Specs(), only)
	if err != nil {
		return err
	}
	if err := in.Show(all, all.print); err != nil {
		return err
	}
	bad, what := all.Errors, wording.Count(all.Errors, "error")
	if strict {
		bad, what = bad+all.Warnings, what+" and "+wording.Count(all.Warnings, "warning")
	}
	if bad > 0 {
		return cli.WithHint("docs/specs.md explains each code", "the specs have %s", what)
	}
	return nil
}

// lint returns the problems of all phases, or of one if only is not 0.
func lint(s *project.Project, set spec.Set, only int) (lintReport, error) {
	all := lintReport{Problems: []lintProblem{}}
	for _, n := range set.Numbers() {
		if this, _ := set.Phase(n); only == 0 || only == n {
			all.Phases++
			all.Contracts += len(this.Contracts)
		}
	}
	if only > 0 && all.Phases == 0 {
		stops := set.Check(only)
		return all, exit.With(exit.Usage, fmt.Errorf("cannot read the spec of phase %d: %s", only, stops[0]), stops[0].Hint)
	}
	for _, p := range set.Lint() {
		if only == 0 || only == p.Phase || p.Phase == 0 {
			all.add(problem(s, p))
		}
	}
	f, err := s.State()
	if err != nil {
		return all, err
	}
	for n, how := range orchestrator.Drift(f, set) {
		// The drift of an earlier phase also stops this one.
		if this, _ := set.Phase(n); only == 0 || n <= only {
			p := problem(s, spec.Problem{
				File:  this.File,
				Phase: this.Number,
				Code:  "drift",
				Text:  how.Error(),
				Hint:  exit.Hint(how),
			})
			if errors.As(how, new(orchestrator.Frozen)) {
				p.Level = "error"
			}
			all.add(p)
		}
	}
	slices.SortStableFunc(all.Problems, func(a, b lintProblem) int { return cmp.Compare(a.Phase, b.Phase) })
	return all, nil
}

// problem returns a problem of a spec in the form of the report.
func problem(s *project.Project, p spec.Problem) lintProblem {
	f := lintProblem{
		Code:       p.Code,
		Level:      "warning",
		File:       s.Paths.Rel(p.File),
		Line:       p.Line,
		Phase:      p.Phase,
		Contract:   p.Contract,
		Text:       p.Text,
		Suggestion: p.Hint,
	}
	if p.Stops() {
		f.Level = "error"
	}
	return f
}

// add adds and counts a problem.
func (all *lintReport) add(f lintProblem) {
	if f.Level == "error" {
		all.Errors++
	} else {
		all.Warnings++
	}
	all.Problems = append(all.Problems, f)
}

func (all lintReport) print(w io.Writer) {
	for _, f := range all.Problems {
		at := f.File
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", at, f.Level, f.Text, f.Code)
		if f.Suggestion != "" {
			fmt.Fprintf(w, "    %s\n", f.Suggestion)
		}
	}
	fmt.Fprintf(w, "%s in %s: %s, %s\n",
		wording.Count(all.Contracts, "contract"), wording.Count(all.Phases, "phase"),
		wording.Count(all.Errors, "error"), wording.Count(all.Warnings, "warning"))
}

// matrix is what `abl spec list --json` prints: contract × phase × last result.
type matrix struct {
	Phases    []matrixPhase    `json:"phases"`
	Contracts []matrixContract `json:"contracts"`
	Others    []matrixOther    `json:"others"` // failures without the id of a contract
}

type matrixPhase struct {
	Phase  int    `json:"phase"`
	Title  string `json:"title"`
	File   string `json:"file"`
	Status string `json:"status"` // of docs/state-format.md, or unsound
}

// specFile returns the path of a phase's spec in the project.
func specFile(n int) string { return fmt.Sprintf("%s/specs/phase%d.md", state.Dir, n) }

// unsound is the status of a phase whose spec cannot be used.
const unsound = "unsound"

type matrixContract struct {
	ID      string         `json:"id"`
	Phase   int            `json:"phase"`
	Line    int            `json:"line"`
	Says    string         `json:"says"` // on one line, complete
	Action  string         `json:"action"`
	Result  string         `json:"result"`
	Absence bool           `json:"absence,omitempty"`
	Results []matrixResult `json:"results"` // of its phase and each later one

	Reads *contractReading `json:"reads,omitempty"` // with --explain
}

// contractReading is how abl reads a contract.
type contractReading struct {
	witness.Reading
	Unread string `json:"not_checkable,omitempty"` // why abl cannot compare anything
}

// matrixResult is the last result of a contract in a phase.
type matrixResult struct {
	Phase  int    `json:"phase"`
	Result string `json:"result"`         // pass, fail or unknown
	By     string `json:"by,omitempty"`   // replay or verifier
	Is     string `json:"is,omitempty"`   // the result of replays (docs/audit-record.md)
	Step   int    `json:"step,omitempty"` // of the iteration with this result
}

type matrixOther struct {
	Phase int    `json:"phase"`
	Says  string `json:"says"`
}

func runSpecList(s *project.Project, explain bool) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	specs, last := s.Specs(), map[int]audit.Record{}
	for _, n := range specs.Numbers() {
		if r, ok, err := audit.Last(s.Paths, n); err != nil {
			s.In.Warn(err)
		} else if ok {
			last[n] = r
		}
	}
	m := matrixOf(f, specs, last)
	if !explain {
		if s.In.Bool("json") {
			return s.In.JSON(m)
		}
		return s.In.Print(m.text(s.In))
	}
	kind := ""
	if s.Conf.App != nil {
		kind = s.Conf.App.Kind
	}
	for _, n := range specs.Numbers() {
		this, _ := specs.Phase(n)
		for _, c := range this.Contracts {
			i := slices.IndexFunc(m.Contracts, func(row matrixContract) bool { return row.ID == c.ID && row.Phase == n })
			m.Contracts[i].Reads = reads(c, kind)
		}
	}
	return s.In.Show(m, m.explain)
}

// reads returns how abl reads a contract of an app of that kind.
func reads(c spec.Contract, kind string) *contractReading {
	read := evidence.Read(c)
	switch {
	case kind == helper.KindTCP:
		return &contractReading{Unread: "abl compares no response of an app of kind tcp"}
	case kind == helper.KindCommand && read.Run != nil:
		return &contractReading{Reading: read.Run.Reading()}
	case kind == helper.KindCommand:
		return &contractReading{Unread: "abl finds no unconditional exit code or output in its result"}
	case read.Claim != nil:
		return &contractReading{Reading: read.Claim.Reading()}
	}
	claim, _ := witness.ReadClaim(c.Under, c.Action, c.Result)
	if len(claim.Reading().Requests) == 0 {
		return &contractReading{Unread: "abl finds no request such as GET /path in its action"}
	}
	return &contractReading{Unread: "abl finds no status, header, text or JSON document in its result"}
}

// explain prints how abl reads each contract.
func (m matrix) explain(w io.Writer) {
	for _, c := range m.Contracts {
		fmt.Fprintf(w, "%s  %s\n", c.ID, c.Says)
		for _, line := range []struct {
			name   string
			values []string
		}{{"request", c.Reads.Requests}, {"status", c.Reads.Statuses}, {"compared", c.Reads.Answer}, {"open", c.Reads.Open}} {
			if len(line.values) > 0 {
				fmt.Fprintf(w, "    %-9s %s\n", line.name, strings.Join(line.values, "; "))
			}
		}
		if c.Reads.Unread != "" {
			fmt.Fprintf(w, "    not checkable: %s\n", c.Reads.Unread)
		}
	}
}

// matrixOf builds the matrix from the newest audit record of each phase. Results are from abl's replays,
// or from the Verifier if abl made no replay.
func matrixOf(f *state.File, specs spec.Set, last map[int]audit.Record) matrix {
	m := matrix{Phases: []matrixPhase{}, Contracts: []matrixContract{}, Others: []matrixOther{}}
	for _, n := range specs.Numbers() {
		this, sound := specs.Phase(n)
		p := matrixPhase{Phase: n, Title: this.Title, File: specFile(n), Status: unsound}
		if sound {
			p.Status = string(f.Phase(n).Status)
		}
		m.Phases = append(m.Phases, p)
		for _, c := range this.Contracts {
			row := matrixContract{
				ID:      c.ID,
				Phase:   n,
				Line:    c.Line,
				Says:    c.Says(),
				Action:  c.Action,
				Result:  c.Result,
				Absence: c.Absence,
			}
			for _, k := range specs.Numbers() {
				if k >= n {
					row.Results = append(row.Results, resultIn(k, last[k], this, c))
				}
			}
			m.Contracts = append(m.Contracts, row)
		}
		same := map[string]bool{}
		for _, s := range specs.UpTo(n) {
			for _, c := range s.Contracts {
				same[c.ID] = unchanged(last[n], s)
			}
		}
		for _, e := range last[n].Entries {
			if !same[e.Contract] {
				m.Others = append(m.Others, matrixOther{n, e.Spec})
			}
		}
	}
	return m
}

// resultIn returns the result of a contract in a record of a phase. It is unknown if the record lacks the
// contract or the contract has changed since.
func resultIn(phase int, r audit.Record, of spec.Spec, c spec.Contract) matrixResult {
	for _, was := range r.Contracts {
		if was.ID == c.ID && was.Says == c.Says() && unchanged(r, of) {
			return matrixResult{Phase: phase, Result: was.Result, By: was.By, Is: was.Is, Step: r.Step}
		}
	}
	return matrixResult{Phase: phase, Result: audit.Unknown}
}

// unchanged reports whether a spec is the same as in the record, or only extended.
func unchanged(r audit.Record, s spec.Spec) bool {
	return slices.ContainsFunc(r.Specs, func(was audit.Spec) bool {
		return was.Phase == s.Number && s.Extends(was.SHA256, was.Bytes)
	})
}

// text lays out the matrix for the output of a command.
func (m matrix) text(in *cli.Input) string {
	if len(m.Phases) == 0 {
		return in.Lines("no specs yet: write .abl/specs/phase1.md")
	}
	var b strings.Builder
	say := func(format string, args ...any) { b.WriteString(in.Lines(fmt.Sprintf(format, args...))) }
	for _, p := range m.Phases {
		if p.Status == unsound {
			say("phase %d has errors: run abl spec lint %d", p.Phase, p.Phase)
			continue
		}
		say("phase %d: %s (%s)", p.Phase, p.Title, p.Status)
	}
	t := view.Table{Header: []string{"ID", "LINE"}, Flex: len(m.Phases) + 2}
	for _, p := range m.Phases {
		t.Header = append(t.Header, fmt.Sprintf("PHASE %d", p.Phase))
	}
	t.Header = append(t.Header, "CONTRACT")
	for _, c := range m.Contracts {
		row := append([]string{c.ID, strconv.Itoa(c.Line)}, make([]string, len(m.Phases)-len(c.Results))...)
		for _, r := range c.Results {
			row = append(row, cell(r))
		}
		t.Rows = append(t.Rows, append(row, c.Says))
	}
	b.WriteString("\n" + in.Table(t))
	if text := m.legend(); text != "" {
		say("%s", text)
	}
	for _, o := range m.Others {
		say("phase %d fails: %s", o.Phase, o.Says)
	}
	return b.String()
}

// cell returns a result in one word. A question mark means that no replay confirms the Verifier's result.
func cell(k matrixResult) string {
	word := map[string]string{audit.Pass: "pass", audit.Fail: "FAIL"}[k.Result]
	switch {
	case k.Result == audit.Pass && (k.Is == "weak" || k.Is == "not read"), k.Is == "flaky":
		return k.Is
	case word != "" && k.By == audit.ByVerifier:
		return word + "?"
	case word == "" && k.Is != "":
		return k.Is
	case word == "":
		return "-"
	}
	return word
}

// legend explains the words in the table.
func (m matrix) legend() string {
	why := map[string]string{
		"pass?":         "the Verifier's result, not replayed",
		"FAIL?":         "the Verifier's result, not confirmed by a replay",
		"weak":          "its test accepts altered responses",
		"not read":      "abl did not read the body that the contract names",
		"not witnessed": "no request of the tests shows it",
		"flaky":         "fails in some runs",
		"ok so far":     "its test passed, in an iteration that failed elsewhere",
		"untried":       "its test could not run",
		"vacuous":       "its test cannot fail",
		"missing":       "no test names it",
		"disputed":      "its test fails in the replay, and the Verifier reported no failure",
	}
	var parts []string
	for _, c := range m.Contracts {
		for _, r := range c.Results {
			word := cell(r)
			if text := why[word]; text != "" {
				parts = append(parts, word+": "+text)
				delete(why, word)
			}
		}
	}
	return strings.Join(parts, "; ")
}
