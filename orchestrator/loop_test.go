package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/ledger"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/audittest"
	"abl/internal/usage"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
	"abl/roles/call"

	"github.com/google/go-cmp/cmp"
)

var errDied = errors.New("killed here")

// world has everything that a Loop works on, in memory and a directory. Each effect can fail before or
// after it, as if abl was killed there.
type world struct {
	*testing.T
	project state.Project
	disk    []byte // state.json
	play    map[string]play
	dieAt   int // number of the effect, from 1, in halves: before, after
	effects int

	done    []string // calls that ran, in order
	commits map[string][]string
	tags    []string
	rows    []string
	ups     int
	asked   int // number of calls of Before
	events  []state.Event
	before  error
	up      map[string]app.Up // by call
	upErr   error
	changed []string
	seal    map[string]state.Seal // by repo
	sealErr error
	finds   state.Found // result of each sweep
	sweeps  []string    // repositories that were swept without a commit
	outages Outages
	waits   []time.Duration
}

// play defines the effects of a call.
type play struct {
	class  outcome.Outcome
	report bool
	failed string // failed_specs.md, may be ""
	during func() // edits by others during the call
	took   time.Duration
	said   roles.Evidence
}

func newWorld(t *testing.T, plays map[string]play) *world {
	t.Helper()
	root := t.TempDir()
	w := &world{T: t, project: state.NewProject(root, "src", "tests"), play: plays, commits: map[string][]string{}, up: map[string]app.Up{}}
	for _, dir := range []string{w.project.Src, w.project.Tests, w.project.Calls()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f := state.New(root)
	f.Phases["1"] = &state.Phase{Status: state.Ready}
	w.save(f)
	return w
}

func (w *world) save(f *state.File) {
	data, err := json.Marshal(f)
	if err != nil {
		w.Fatal(err)
	}
	w.disk = data
}

// effect runs a function unless the world fails before; it may fail afterwards.
func (w *world) effect(do func()) error {
	w.effects++
	if w.effects == w.dieAt {
		return errDied
	}
	do()
	w.effects++
	if w.effects == w.dieAt {
		return errDied
	}
	return nil
}

// loop returns the loop of a new abl, which reads the state from disk.
func (w *world) loop() *Loop {
	var f state.File
	if err := json.Unmarshal(w.disk, &f); err != nil {
		w.Fatal(err)
	}
	return &Loop{
		Number: 1, Max: 5, Project: w.project, File: &f,
		Save:  func() error { return w.effect(func() { w.save(&f) }) },
		Calls: w, App: w, Jobs: w, Src: repo{w, "src"}, Tests: repo{w, "tests"}, Ledger: w,
		CheckLock: func() error { return nil },
		Before:    func(string) error { w.asked++; return w.before },
		Out:       state.Func(func(e state.Event) { w.events = append(w.events, e) }),
		Outages:   w.outages,

		TestNames: func(context.Context) ([]string, error) { return nil, nil },
	}
}

func (w *world) Job(_ context.Context, role roles.Role, p state.Phase, up app.Up) (call.Job, error) {
	return call.Job{Role: role, Call: agent.Call{ID: roles.Key(1, role, p.Step, p.Attempt)}}, nil
}

// Commands is nothing: what replays are given is tried on a real engine.
func (w *world) Commands(roles.Role, state.Phase, app.Up) helper.CmdSpec { return helper.CmdSpec{} }

// Run plays a call once; a second time it finds its outcome, as a Runner does.
func (w *world) Run(_ context.Context, j call.Job) (roles.Outcome, error) {
	key := j.Call.ID
	rec := roles.Record{Dir: w.project.Call(key)}
	if o, ok, err := rec.Outcome(); ok || err != nil {
		return o, err
	}
	p, ok := w.play[key]
	if !ok {
		w.Fatalf("nobody expects a call %s", key)
	}
	n := int64(len(w.done))
	o := roles.Outcome{Key: key, Role: j.Role.Name, Model: "m", Class: p.class, Reason: "why", Usage: []agent.Usage{{Model: "m", Count: usage.Count{Total: &n}}}, Ended: time.Now(), Duration: p.took.Milliseconds(), Evidence: p.said}
	if p.report {
		o.Report = "report.md"
	}
	return o, w.effect(func() {
		w.done = append(w.done, key)
		if err := os.MkdirAll(rec.Dir, 0o755); err != nil {
			w.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(rec.Dir, "started"), nil, 0o644); err != nil {
			w.Fatal(err)
		}
		if p.during != nil {
			p.during()
		}
		if p.failed != "" {
			if err := os.WriteFile(filepath.Join(w.project.Tests, failedspecs.FileName), []byte(p.failed), 0o644); err != nil {
				w.Fatal(err)
			}
		} else {
			os.Remove(filepath.Join(w.project.Tests, failedspecs.FileName))
		}
		if err := rec.SaveOutcome(o); err != nil {
			w.Fatal(err)
		}
	})
}

func (w *world) Up(_ context.Context, key, commit string) (app.Up, error) {
	if tip, _ := (repo{w, "src"}).Tip(); commit != tip {
		w.Errorf("the app of %s starts from commit %q, want %q", key, commit, tip)
	}
	if w.upErr != nil {
		return app.Up{}, w.upErr
	}
	return w.up[key], w.effect(func() { w.ups++ })
}

func (w *world) Prepared(_ context.Context, key string) (string, error) {
	return w.up[key].Failed, nil
}

func (w *world) Down(context.Context, string) error { return w.effect(func() {}) }

// Append ignores existing rows, like the ledger.
func (w *world) Append(rows []ledger.Row) error {
	return w.effect(func() {
		for _, r := range rows {
			row := fmt.Sprintf("%s %s %s %s", r.CallID, r.Role, r.Source, r.Outcome)
			if r.Total != nil {
				row += fmt.Sprint(" ", *r.Total)
			}
			if !strings.Contains(strings.Join(w.rows, "\n")+"\n", row+"\n") {
				w.rows = append(w.rows, row)
			}
		}
	})
}

// repo is one of the two repositories.
type repo struct {
	*world
	name string
}

func (r repo) Snapshot(_ context.Context, subject, key string, ifChanged bool, keep func(state.Found) error) (Commit, error) {
	line := subject + " " + key
	if class := r.play[key].class; ifChanged != (class != "" && class != outcome.Done) {
		r.Errorf("commit of %s, a call that ended as %q: got ifChanged %t", key, class, ifChanged)
	}
	if err := keep(r.finds); err != nil {
		return Commit{}, err
	}
	if strings.Contains(key, "-person-") {
		r.changed = nil
	}
	return Commit{Hash: key}, r.effect(func() {
		if all := r.commits[r.name]; len(all) == 0 || all[len(all)-1] != line {
			r.commits[r.name] = append(all, line)
		}
	})
}

func (r repo) Tag(_ context.Context, name, commit string) error {
	return r.effect(func() {
		line := r.name + " " + name + " " + commit
		if !strings.Contains(strings.Join(r.tags, "\n"), line) {
			r.tags = append(r.tags, line)
		}
	})
}

func (r repo) Sweep(_ context.Context, keep func(state.Found) error) error {
	r.sweeps = append(r.sweeps, r.name)
	return keep(r.finds)
}

func (r repo) Seal() (state.Seal, error) {
	s := r.seal[r.name]
	if s.History == nil {
		s.History = map[string]string{} // like git.Repo without refs
	}
	return s, r.sealErr
}

func (r repo) Restore(context.Context, string) ([]string, error) { return nil, nil }

func (r repo) Tip() (string, error) {
	all := r.commits[r.name]
	if len(all) == 0 {
		return "", nil
	}
	return strings.Fields(all[len(all)-1])[1], nil
}

func (r repo) Differs(context.Context, string) ([]string, error) { return r.changed, nil }

func (r repo) TreeHash(commit string) (string, error) { return "hash of " + commit, nil }

func (r repo) WorkKey(context.Context) (string, error) { return fmt.Sprint(r.changed), nil }

func (r repo) TreeKey(commit string, without ...string) (string, error) {
	return "tree of " + commit, nil
}
func (r repo) TagCommit(name string) (string, bool, error) { return "tests of " + name, true, nil }

// print returns the state of the world as text.
func (w *world) print() string {
	var f state.File
	if err := json.Unmarshal(w.disk, &f); err != nil {
		w.Fatal(err)
	}
	p := f.Phases["1"]
	var b strings.Builder
	fmt.Fprintf(&b, "%s round %d iteration %d step %d call %s verdict %s\n", p.Status, p.Round, p.Iteration, p.Step, p.Call, p.LastVerdict)
	for _, h := range p.History {
		fmt.Fprintf(&b, "history %d.%d step %d %s %d %s %s\n", h.Round, h.Iteration, h.Step, h.Verdict, h.Entries, h.SrcCommit, h.TestsCommit)
	}
	steps, err := audit.Steps(w.project, 1)
	if err != nil {
		w.Fatal(err)
	}
	for _, step := range steps {
		r := w.audited(step)
		fmt.Fprintf(&b, "record %d.%d step %d %s %s %s %s", r.Round, r.Iteration, r.Step, r.Verdict, r.Status, r.Commits.Source, r.Commits.Tests)
		for _, c := range r.Calls {
			fmt.Fprintf(&b, ", %s %s", c.Key, c.Class)
		}
		fmt.Fprintln(&b)
	}
	for _, name := range []string{"src", "tests"} {
		for _, c := range w.commits[name] {
			fmt.Fprintln(&b, name, c)
		}
	}
	for _, line := range append(append([]string{"calls " + strings.Join(w.done, " ")}, w.tags...), w.rows...) {
		fmt.Fprintln(&b, line)
	}
	if data, err := os.ReadFile(filepath.Join(w.project.Tests, failedspecs.FileName)); err == nil {
		fmt.Fprintf(&b, "failed %q\n", strings.SplitN(string(data), "\n", 2)[0])
	}
	return b.String()
}

// audited returns the record of a step, which must fit the schema.
func (w *world) audited(step int) audit.Record {
	w.Helper()
	data, err := os.ReadFile(audit.Path(w.project, 1, step))
	schema, serr := os.ReadFile("../docs/audit-record.schema.json")
	if err := errors.Join(err, serr); err != nil {
		w.Fatal(err)
	}
	for _, wrong := range audittest.Violations(schema, data) {
		w.Errorf("step-%d.json: %s", step, wrong)
	}
	r, err := audit.Load(w.project, 1, step)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

const entry = "SPEC: a → b\nINPUT: a\nOBSERVED: c\n"

var good = play{class: outcome.Done, report: true}

func failing(text string) play { return play{class: outcome.Done, report: true, failed: text} }

// after runs the loop until nothing fails any more, and returns the error of the last run.
func (w *world) after(ctx context.Context) error {
	w.effects = 0
	_, err := w.loop().Run(ctx)
	return err
}

func TestLoop(t *testing.T) {
	for _, c := range []struct {
		name  string
		plays map[string]play
		err   error
		want  string
	}{
		{"a fail, then a pass", map[string]play{"p1-build-1.1": good, "p1-verify-1.1": failing(entry), "p1-build-2.1": good, "p1-verify-2.1": good}, nil, `
passed round 1 iteration 2 step 2 call p1-verify-2.1 verdict pass
history 1.1 step 1 fail 1 p1-build-1.1 p1-verify-1.1
history 1.2 step 2 pass 0 p1-build-2.1 p1-verify-2.1
record 1.1 step 1 fail refuted p1-build-1.1 p1-verify-1.1, p1-build-1.1 done, p1-verify-1.1 done
record 1.2 step 2 pass passed p1-build-2.1 p1-verify-2.1, p1-build-2.1 done, p1-verify-2.1 done
src phase1/build/step-1 p1-build-1.1
src phase1/build/step-2 p1-build-2.1
tests phase1/verify/step-1 p1-verify-1.1
tests phase1/verify/step-2 p1-verify-2.1
calls p1-build-1.1 p1-verify-1.1 p1-build-2.1 p1-verify-2.1
src phase1/passed p1-build-2.1
tests phase1/passed p1-verify-2.1
p1-build-1.1 builder cli done 0
p1-verify-1.1 verifier cli done 1
p1-build-2.1 builder cli done 2
p1-verify-2.1 verifier cli done 3
`},
		{"malformed twice costs one iteration of the verifier alone", map[string]play{
			"p1-build-1.1": good, "p1-verify-1.1": failing("SPEC: half\n"), "p1-verify-1.2": failing("noise"), "p1-verify-2.1": good}, nil, `
passed round 1 iteration 2 step 2 call p1-verify-2.1 verdict pass
history 1.1 step 1 unverified 0 p1-build-1.1 p1-verify-1.2
history 1.2 step 2 pass 0 p1-build-1.1 p1-verify-2.1
record 1.1 step 1 unverified verifying p1-build-1.1 p1-verify-1.2, p1-build-1.1 done, p1-verify-1.1 done, p1-verify-1.2 done
record 1.2 step 2 pass passed p1-build-1.1 p1-verify-2.1, p1-verify-2.1 done
src phase1/build/step-1 p1-build-1.1
tests phase1/verify/step-1 p1-verify-1.1
tests phase1/verify/step-1.2 p1-verify-1.2
tests phase1/verify/step-2 p1-verify-2.1
calls p1-build-1.1 p1-verify-1.1 p1-verify-1.2 p1-verify-2.1
src phase1/passed p1-build-1.1
tests phase1/passed p1-verify-2.1
p1-build-1.1 builder cli done 0
p1-verify-1.1 verifier cli done 1
p1-verify-1.2 verifier cli done 2
p1-verify-2.1 verifier cli done 3
`},
		{"no reports", map[string]play{"p1-build-1.1": {class: outcome.Done}, "p1-build-1.2": {class: outcome.Done}, "p1-verify-1.1": {class: outcome.Done}, "p1-verify-1.2": good}, nil, `
passed round 1 iteration 1 step 1 call p1-verify-1.2 verdict pass
history 1.1 step 1 pass 0 p1-build-1.2 p1-verify-1.2
record 1.1 step 1 pass passed p1-build-1.2 p1-verify-1.2, p1-build-1.1 done, p1-build-1.2 done, p1-verify-1.1 done, p1-verify-1.2 done
src phase1/build/step-1 p1-build-1.1
src phase1/build/step-1.2 p1-build-1.2
tests phase1/verify/step-1 p1-verify-1.1
tests phase1/verify/step-1.2 p1-verify-1.2
calls p1-build-1.1 p1-build-1.2 p1-verify-1.1 p1-verify-1.2
src phase1/passed p1-build-1.2
tests phase1/passed p1-verify-1.2
p1-build-1.1 builder cli done 0
p1-build-1.2 builder cli done 1
p1-verify-1.1 verifier cli done 2
p1-verify-1.2 verifier cli done 3
`},
		{"interrupted by an abl before this one", map[string]play{"p1-build-1.1": {class: outcome.Interrupted}, "p1-build-1.2": good, "p1-verify-1.1": good}, nil, `
passed round 1 iteration 1 step 1 call p1-verify-1.1 verdict pass
history 1.1 step 1 pass 0 p1-build-1.2 p1-verify-1.1
record 1.1 step 1 pass passed p1-build-1.2 p1-verify-1.1, p1-build-1.1 interrupted, p1-build-1.2 done, p1-verify-1.1 done
src phase1/build/step-1.2 p1-build-1.2
tests phase1/verify/step-1 p1-verify-1.1
calls p1-build-1.1 p1-build-1.2 p1-verify-1.1
src phase1/passed p1-build-1.2
tests phase1/passed p1-verify-1.1
p1-build-1.1 builder cli interrupted 0
p1-build-1.2 builder cli done 1
p1-verify-1.1 verifier cli done 2
`},
		{"the verifier dies twice, having seen nothing fail", map[string]play{"p1-build-1.1": good, "p1-verify-1.1": {class: outcome.OutOfMemory}, "p1-verify-1.2": {class: outcome.Timeout}}, call.ErrAgent, `
verifying round 1 iteration 1 step 1 call p1-verify-1.3 verdict unverified
src phase1/build/step-1 p1-build-1.1
tests phase1/verify/step-1 p1-verify-1.1
tests phase1/verify/step-1.2 p1-verify-1.2
calls p1-build-1.1 p1-verify-1.1 p1-verify-1.2
p1-build-1.1 builder cli done 0
p1-verify-1.1 verifier cli oom 1
p1-verify-1.2 verifier cli timeout 2
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.plays)
			if err := w.after(t.Context()); !errors.Is(err, c.err) {
				t.Fatalf("end: got %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), w.print()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if c.err == nil {
				everyDeath(t, c.plays, w.print())
			}
		})
	}
}

// everyDeath kills the loop before and after each effect in turn. After a restart it must reach the
// same end.
func everyDeath(t *testing.T, plays map[string]play, want string) {
	for n := 1; ; n++ {
		w := newWorld(t, plays)
		w.dieAt = n
		err := w.after(t.Context())
		if err == nil {
			if n < 20 {
				t.Errorf("number of the last death: got %d, want at least 20", n)
			}
			return
		}
		if !errors.Is(err, errDied) {
			t.Fatalf("death %d: got error %v, want %v", n, err, errDied)
		}
		w.dieAt = 0
		if err := w.after(t.Context()); err != nil {
			t.Fatalf("run after death %d: got error %v, want none", n, err)
		}
		if diff := cmp.Diff(want, w.print()); diff != "" {
			t.Errorf("after death %d (-want +got)\n%s", n, diff)
		}
	}
}
