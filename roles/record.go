package roles

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/tap"
	"abl/internal/witness"
	"abl/roles/agent"
)

// Record is the directory in which one call keeps what it was given, what it
// printed and how it ended. It is never removed by abl.
type Record struct{ Dir string }

// In is the directory that the box sees read-only.
func (r Record) In() string { return filepath.Join(r.Dir, "in") }

// Stdout takes the agent's standard output.
func (r Record) Stdout() string { return filepath.Join(r.Dir, "stdout") }

// Stderr takes the agent's standard error.
func (r Record) Stderr() string { return filepath.Join(r.Dir, "stderr") }

// Outcome is how a call ended; it is on disk before its box is removed.
type Outcome struct {
	Key     string          `json:"key"`
	Role    string          `json:"role"`
	Agent   string          `json:"agent"`
	Model   string          `json:"model"`
	Effort  string          `json:"effort,omitempty"` // "" for the CLI's own default
	Session string          `json:"session"`
	Class   outcome.Outcome `json:"class"`
	// One sentence when the class is not done.
	Reason   string        `json:"reason,omitempty"`
	Evidence Evidence      `json:"evidence,omitzero"`
	Exit     int           `json:"exit"`
	Started  time.Time     `json:"started"`
	Ended    time.Time     `json:"ended"`
	Duration int64         `json:"duration_ms"`
	Usage    []agent.Usage `json:"usage,omitempty"`
	Source   string        `json:"source,omitempty"` // who counted: gateway or cli
	// What the agent says where the gateway counted.
	Claimed []agent.Usage `json:"claimed,omitempty"`
	// The budget's words when it ended the call.
	Over     string   `json:"over,omitempty"`
	Charged  *Charged `json:"charged,omitempty"` // what the budgets counted
	Requests int64    `json:"requests"`          // -1 unknown
	// How the last whole answer ended, in the provider's word.
	Finish string `json:"finish,omitempty"`
	Report string `json:"report,omitempty"`
	Output int64  `json:"output_bytes"`
	// On which it listened in the end, when it was only watched for a while.
	Ports string `json:"ports,omitempty"`
}

// Intent is what the call was started with, written before its box is made.
type Intent struct {
	Key     string    `json:"key"`
	Box     string    `json:"box"`
	Image   string    `json:"image"`
	Agent   string    `json:"agent"`
	Model   string    `json:"model"`
	Effort  string    `json:"effort,omitempty"`
	Session string    `json:"session"`
	Begun   time.Time `json:"begun"`
	// Reports that were there before, name → modification time in ns.
	Reports map[string]int64 `json:"reports"`
}

// Outcome reads how the call ended; ok is false while it has not.
func (r Record) Outcome() (Outcome, bool, error) { return Read[Outcome](r, outcomeFile) }

// SaveOutcome writes it durably.
func (r Record) SaveOutcome(o Outcome) error { return r.Write(outcomeFile, o) }

// Intent reads what the call was started with.
func (r Record) Intent() (Intent, bool, error) { return Read[Intent](r, intentFile) }

// Stop notes that abl is about to end the call's box, and why. The first reason
// stays: an abl that is killed right afterwards must not take its own stop for
// the agent's failure.
func (r Record) Stop(why outcome.Outcome) error { return r.stop(stopped{Class: why}) }

func (r Record) stop(why stopped) error {
	if already, err := r.stopped(); err != nil || already.Class != "" {
		return err
	}
	return r.Write(stoppedFile, why)
}

// stopped is why abl ended a call's box; no class when it did not.
type stopped struct {
	Class  outcome.Outcome `json:"class"`
	Reason string          `json:"reason,omitempty"` // beyond what the class says
}

// stopped reads why abl ended the box. A damaged reason is a lost call, never an agent's good end.
func (r Record) stopped() (stopped, error) {
	why, _, err := Read[stopped](r, stoppedFile)
	if damaged, is := errors.AsType[*Damaged](err); is {
		return stopped{outcome.Lost, "abl stopped it, and the reason is lost: " + damaged.What}, nil
	}
	return why, err
}

// The files of a record.
const (
	intentFile  = "intent.json"
	outcomeFile = "outcome.json"
	stoppedFile = "stopped.json"

	FindingFile    = "finding.json"    // the verdict over the call
	RegressionFile = "regression.json" // what the tests of earlier phases have shown before it
	HistoryFile    = "history.json"    // where the role's history stood before it
	FoundFile      = "swept.json"      // what a sweep found after it
)

// Read reads a file of a record; false when there is none. Its error is a *Damaged for a file that
// abl did not write like this.
func Read[T any](r Record, name string) (v T, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, name), &v)
	return v, ok, err
}

// Write writes a file of the record durably, and makes the record when there is none.
func (r Record) Write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	safe := redact.Whole(string(data)) // the same JSON, safe to look at
	if err = os.MkdirAll(r.Dir, 0o755); err == nil {
		err = hostfs.Write(filepath.Join(r.Dir, name), []byte(safe+"\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the record of a call: %w", err)
	}
	return nil
}

// Started is whether the call's box was started, or is about to be.
func (r Record) Started() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, "started"))
	return err == nil
}

func (r Record) markStarted() error {
	return hostfs.Write(filepath.Join(r.Dir, "started"), nil, 0o644)
}

// unmark forgets what was noted of a box that never ran.
func (r Record) unmark() error { return r.forget("started", stoppedFile) }

// forget removes files of the record, where they are.
func (r Record) forget(names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(r.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot keep the record of a call: %w", err)
		}
	}
	return nil
}

// Net is what is known of the engine's networks.
type Net struct {
	Apart sandbox.Apart // how they are kept apart from its host
	Away  bool          // the engine is on another machine, where abl cannot listen
	Other bool          // its kernel is not this machine's, and numbers files otherwise
	Weak  string        // why they are not proven, which the person allowed; "" they are
}

// Boundary is the proof that a box was what abl meant it to be.
type Boundary struct {
	Box string    `json:"box"`
	At  time.Time `json:"at"`
	// Why the engine's networks are not proven; the person allowed it.
	Weak string `json:"weak_network,omitempty"`
	// The engine's record of the box, before its start.
	Made sandbox.Proof `json:"made"`
	// What its first program found, before any other was started.
	Inside  sandbox.Proof `json:"inside"`
	ProbeMS int64         `json:"probe_ms"` // how long that took
	// Abl was killed meanwhile: nobody listened whether the box reaches this machine.
	Unheard bool `json:"unheard,omitempty"`
	// Why the box was not let go on.
	Failed string `json:"failed,omitempty"`
}

// boundaryFile is where it is kept, in a record.
const boundaryFile = "boundary.json"

// Boundary reads the proof of a call's box; ok is false when there is none.
func (r Record) Boundary() (Boundary, bool, error) { return Read[Boundary](r, boundaryFile) }

// App is the record of the app that was up for the call.
func (r Record) App() Record { return Record{filepath.Join(r.Dir, "app")} }

// Output is where a record of an app keeps what it printed.
func (r Record) Output() string { return filepath.Join(r.Dir, "app.log") }

// keep keeps the proof.
func (p proving) keep(b Boundary) error {
	if err := p.secret.Clean(&b); err != nil {
		return err
	}
	return Record{p.dir}.Write(boundaryFile, b)
}

// underWay begins the name of a record while its replay goes on.
const underWay = "replaying-"

// sweepReplays removes the records of replays that a killed abl was in.
func sweepReplays(call string) error {
	names, err := readNames(call)
	for _, name := range names {
		if strings.HasPrefix(name, underWay) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(call, name)))
		}
	}
	return err
}

// replayFile says, in the record of a replay, what came of it; replayDir begins
// the names of such records.
const (
	replayFile = "replay.json"
	replayDir  = "replay-"
)

// keptReplay is the content of replayFile.
type keptReplay struct {
	At      time.Time `json:"at"`
	Against Against   `json:"against"`
	Commit  string    `json:"commit,omitempty"`
	Replayed
}

// keep notes what came of a replay.
func (r *Replayer) keep(p Replay, at time.Time, out Replayed) error {
	k := keptReplay{At: at, Against: p.Against, Commit: p.Commit, Replayed: out}
	if err := r.App.Safe.Clean(&k); err != nil {
		return err
	}
	return Record{r.App.Project.Call(p.Key)}.Write(replayFile, k)
}

// order is that of replays in a report.
var order = []Against{TheApp, NoApp, Empty, Trouble}

// ForgetReplays takes the notes of a call's replays away, before they are made
// anew: an abl that was killed may have made others. Those of earlier phases'
// tests are made by themselves.
func ForgetReplays(p state.Project, key string, earlier bool) error {
	names, err := replaysOf(p, key)
	if earlier {
		err = errors.Join(err, Record{p.Call(key)}.forget(RegressionFile))
	}
	for _, name := range names {
		if strings.HasPrefix(name, replayDir+"phase") == earlier {
			err = errors.Join(err, Record{filepath.Join(p.Call(key), name)}.forget(replayFile))
		}
	}
	return err
}

// replaysOf are the folders of a call's replays.
func replaysOf(p state.Project, key string) ([]string, error) {
	names, err := readNames(p.Call(key))
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, replayDir) }), err
}

// EarlierReplays are the records of the replays of earlier phases' tests that were made before a call.
func (r Record) EarlierReplays() (all []Record) {
	names, _ := readNames(r.Dir) // what cannot be read is shown by nobody
	for _, name := range names {
		if strings.HasPrefix(name, replayDir+"phase") {
			all = append(all, Record{filepath.Join(r.Dir, name)})
		}
	}
	return all
}

// Trail is what the records of a step's calls tell for the audit, in the order of
// time.
func Trail(p state.Project, phase, step int) (calls []audit.Call, replays []audit.Replay, err error) {
	names, err := readNames(p.Calls())
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	for _, name := range names {
		k, ok := ParseKey(name)
		if !ok || k.Phase != phase || k.Step != step {
			continue
		}
		c, isCall, err := tellCall(p, name, k)
		made, rerr := tellReplays(p, name)
		if err := errors.Join(err, rerr); err != nil {
			return nil, nil, err
		}
		if isCall {
			calls = append(calls, c)
		}
		replays = append(replays, made...)
	}
	slices.SortStableFunc(calls, func(a, b audit.Call) int {
		return cmp.Or(strings.Compare(a.Role, b.Role), cmp.Compare(a.Attempt, b.Attempt)) // the Builder comes first
	})
	return calls, replays, nil
}

// tellCall tells of one call; ok is false when no agent was called under the key.
func tellCall(p state.Project, key string, k KeyParts) (c audit.Call, ok bool, err error) {
	rec := Record{Dir: p.Call(key)}
	intent, begun, err := rec.Intent()
	out, ended, oerr := rec.Outcome()
	if err := errors.Join(err, oerr); err != nil || !begun && !ended {
		return c, false, err
	}
	found, _, err := Read[struct {
		Verdict string `json:"verdict"`
	}](rec, FindingFile)
	if err != nil {
		return c, false, err
	}
	c = audit.Call{
		Key: key, Role: k.Role.Name, Attempt: k.Attempt, Agent: cmp.Or(intent.Agent, out.Agent), Model: cmp.Or(out.Model, intent.Model),
		Session: cmp.Or(out.Session, intent.Session), Image: intent.Image, Class: string(out.Class), Finish: out.Finish, Reason: out.Reason,
		Exit: out.Exit, Started: out.Started, Ended: out.Ended, Report: out.Report, Verdict: found.Verdict,
	}
	if !ended { // the outcome was set aside, and the call was made again
		c.Class, c.Reason = string(outcome.Lost), "its outcome is not on record"
	}
	c.Boundary, c.App, err = proofs(p, rec.Dir)
	return c, true, err
}

// tellReplays tells of the replays under a call's key, those against one thing in
// the order of time.
func tellReplays(p state.Project, key string) (all []audit.Replay, err error) {
	names, err := replaysOf(p, key)
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, name := range names {
		dir := filepath.Join(p.Call(key), name)
		k, ok, err := Read[keptReplay](Record{dir}, replayFile)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // it was forgotten, or abl was killed amid it
		}
		r := audit.Replay{
			Name: strings.TrimPrefix(name, replayDir), Call: key, Against: string(k.Against), Commit: k.Commit,
			Exit: k.Exit, Late: k.Late, Gone: k.Gone, Failed: k.AppFailed, MS: k.Took.Milliseconds(),
		}
		if k.AppFailed == "" {
			err = tellOutput(p, dir, &r)
		}
		if err == nil {
			r.Boundary, r.App, err = proofs(p, dir)
		}
		if err != nil {
			return nil, err
		}
		at[r.Name] = k.At
		all = append(all, r)
	}
	// Those against the app come first: the others go on beside them, so time says
	// nothing of their order.
	slices.SortStableFunc(all, func(a, b audit.Replay) int {
		return cmp.Or(cmp.Compare(slices.Index(order, Against(a.Against)), slices.Index(order, Against(b.Against))), at[a.Name].Compare(at[b.Name]))
	})
	return all, nil
}

// tellOutput reads again what a replay printed, as it was judged.
func tellOutput(p state.Project, dir string, r *audit.Replay) (err error) {
	var data []byte
	if data, r.Output, err = fileIn(p, dir, "stdout", maxReplay+1); err != nil || r.Output == nil {
		return err
	}
	doc := tap.Parse(data, !r.Late && r.Gone == "")
	r.Tests = len(doc.Points)
	for _, point := range doc.Points {
		if point.OK && point.Void() == "" {
			r.OK++
		}
	}
	for _, d := range doc.Doubts() {
		r.Doubts = append(r.Doubts, d.Text)
	}
	return nil
}

// proofs are those of the box of a record, and of the app's that was up for it.
func proofs(p state.Project, dir string) (own, app *audit.Proof, err error) {
	if own, err = proofIn(p, dir); err == nil {
		app, err = proofIn(p, filepath.Join(dir, "app"))
	}
	return own, app, err
}

func proofIn(p state.Project, dir string) (*audit.Proof, error) {
	b, ok, err := Record{dir}.Boundary()
	if err != nil || !ok {
		return nil, err
	}
	_, file, err := fileIn(p, dir, boundaryFile, 0)
	if err != nil || file == nil {
		return nil, err
	}
	proof := &audit.Proof{File: *file, Box: b.Box, At: b.At, Weak: b.Weak, Unheard: b.Unheard, Failed: b.Failed}
	for _, c := range slices.Concat(b.Made, b.Inside) {
		proof.Checks++
		if c.OK {
			proof.Held++
		}
	}
	if c, ok := b.Made.Get("image"); ok {
		_, proof.Image, _ = strings.Cut(c.Got, " ")
	}
	return proof, nil
}

// fileIn reads a file of a record, no more than most bytes of it, and says which file it is
// by all of them; nil where there is none.
func fileIn(p state.Project, dir, name string, most int64) (data []byte, file *audit.File, err error) {
	f, err := hostfs.Open(dir, name)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil, nil
	}
	if err == nil {
		defer f.Close()
		sum := sha256.New()
		data, err = io.ReadAll(io.LimitReader(io.TeeReader(f, sum), most))
		if err == nil {
			_, err = io.Copy(sum, f)
		}
		file = &audit.File{Path: p.Rel(filepath.Join(dir, name)), SHA256: hex.EncodeToString(sum.Sum(nil))}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the records of a step: %w", err)
	}
	return data, file, nil
}

// maxSeen bounds what is read of a witness's record for people, in bytes.
const maxSeen = 8 << 20

// Exchanges are the two sides of those that the witness saw in an iteration, by the words that a
// finding has for them, where they are on this machine and not too many; clean makes them safe to show.
func Exchanges(p state.Project, r audit.Record, clean func([]byte) []byte) (map[string][2]string, error) {
	all, errs := map[string][2]string{}, error(nil)
	for _, run := range r.Replays {
		dir := filepath.Join(run.Call, replayDir+run.Name, "witness")
		if run.Against != "app" || strings.HasPrefix(run.Name, "altered-") || !filepath.IsLocal(dir) {
			continue
		}
		data, _ := hostfs.Read(filepath.Join(p.Calls(), dir), "record", maxSeen)
		exchanges, err := witness.ReadRecord(bytes.NewReader(clean(data)))
		errs = errors.Join(errs, err)
		for _, x := range exchanges {
			if _, known := all[x.Line()]; !known {
				request, answer := x.Texts()
				all[x.Line()] = [2]string{string(clean([]byte(request))), string(clean([]byte(answer)))}
			}
		}
	}
	return all, errs
}
