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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/internal/tap"
	"abl/internal/witness"
)

// replayFile says, in the record of a replay, what came of it; replayDir begins
// the names of such records.
const (
	replayFile = "replay.json"
	replayDir  = "replay-"
)

// maxReplays is the most replays of one call that are looked at.
const maxReplays = 10_000

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
	if _, gone := os.Lstat(p.Call(key)); earlier && gone == nil {
		err = errors.Join(err, hostfs.Remove(p.Call(key), RegressionFile))
	}
	for _, name := range names {
		if strings.HasPrefix(name, replayDir+"phase") == earlier {
			err = errors.Join(err, hostfs.Remove(filepath.Join(p.Call(key), name), replayFile))
		}
	}
	return err
}

// replaysOf are the folders of a call's replays.
func replaysOf(p state.Project, key string) ([]string, error) {
	entries, err := readNames(p.Call(key))
	if err != nil || len(entries) > maxReplays {
		return nil, err
	}
	return slices.DeleteFunc(entries, func(name string) bool { return !strings.HasPrefix(name, replayDir) }), nil
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
		if err != nil {
			return nil, nil, err
		}
		if isCall {
			calls = append(calls, c)
		}
		more, err := tellReplays(p, name)
		if err != nil {
			return nil, nil, err
		}
		replays = append(replays, more...)
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
		Key: key, Role: k.Role.Name, Attempt: k.Attempt, Agent: intent.Agent, Model: cmp.Or(out.Model, intent.Model),
		Session: cmp.Or(out.Session, intent.Session), Image: intent.Image, Class: string(out.Class), Finish: out.Finish, Reason: out.Reason,
		Exit: out.Exit, Started: out.Started, Ended: out.Ended, Report: out.Report, Verdict: found.Verdict,
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
			if err := tellOutput(p, dir, &r); err != nil {
				return nil, err
			}
		}
		if r.Boundary, r.App, err = proofs(p, dir); err != nil {
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
func tellOutput(p state.Project, dir string, r *audit.Replay) error {
	f, err := hostfs.Open(dir, "stdout")
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read what a replay printed: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	data, err := io.ReadAll(io.LimitReader(io.TeeReader(f, sum), maxReplay+1))
	if err == nil {
		_, err = io.Copy(sum, f) // what is beyond that counts for the hash alone
	}
	if err != nil {
		return fmt.Errorf("cannot read what a replay printed: %w", err)
	}
	r.Output = &audit.File{Path: p.Rel(filepath.Join(dir, "stdout")), SHA256: hex.EncodeToString(sum.Sum(nil))}
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
	const most = 4 << 20
	data, err := hostfs.Read(dir, boundaryFile, most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read a boundary proof: %w", err)
	}
	path := filepath.Join(dir, boundaryFile)
	var b Boundary
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", path, err)
	}
	sum := sha256.Sum256(data)
	proof := &audit.Proof{File: audit.File{Path: p.Rel(path), SHA256: hex.EncodeToString(sum[:])}, Box: b.Box, At: b.At, Weak: b.Weak, Unheard: b.Unheard, Failed: b.Failed}
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

// maxSeen bounds what is read of a witness's record for people, in bytes.
const maxSeen = 8 << 20

// Exchanges are those that the witness saw in an iteration, by the words that a finding has
// for them, where they are on this machine and not too many; clean makes them safe to show.
func Exchanges(p state.Project, r audit.Record, clean func([]byte) []byte) (map[string]witness.Exchange, error) {
	all, errs := map[string]witness.Exchange{}, error(nil)
	for _, run := range r.Replays {
		dir := filepath.Join(run.Call, replayDir+run.Name, "witness")
		if run.Against != "app" || strings.HasPrefix(run.Name, "altered-") || !filepath.IsLocal(dir) {
			continue
		}
		data, _ := hostfs.Read(filepath.Join(p.Calls(), dir), "record", maxSeen)
		exchanges, err := witness.ReadRecord(bytes.NewReader(clean(data)))
		errs = errors.Join(errs, err)
		for _, x := range exchanges {
			words := fmt.Sprintf("%s → %d", x.Request(), x.Status)
			if _, known := all[words]; !known {
				x.Sent.Begins, x.Got.Begins = clean(x.Sent.Begins), clean(x.Got.Begins)
				all[words] = x
			}
		}
	}
	return all, errs
}
