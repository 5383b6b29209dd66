package replay

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/audit"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/tap"
	"abl/internal/witness"
	"abl/roles"
)

// Trail returns the audit records of a step's calls and replays in order of time.
func Trail(p state.Project, phase, step int) (calls []audit.Call, replays []audit.Replay, err error) {
	names, err := roles.Names(p.Calls())
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	for _, name := range names {
		k, ok := roles.ParseKey(name)
		if !ok || k.Phase != phase || k.Step != step {
			continue
		}
		c, isCall, err := auditCall(p, name, k)
		made, rerr := auditReplays(p, name)
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

// auditCall returns the audit record of one call. ok is false if no agent was called for the key.
func auditCall(p state.Project, key string, k roles.KeyParts) (c audit.Call, ok bool, err error) {
	rec := roles.Record{Dir: p.Call(key)}
	intent, begun, err := rec.Intent()
	out, ended, oerr := rec.Outcome()
	if err := errors.Join(err, oerr); err != nil || !begun && !ended {
		return c, false, err
	}
	found, _, err := roles.Read[struct {
		Verdict string `json:"verdict"`
	}](rec, roles.FindingFile)
	if err != nil {
		return c, false, err
	}
	c = audit.Call{
		Key:     key,
		Role:    k.Role.Name,
		Attempt: k.Attempt,
		Agent:   cmp.Or(intent.Agent, out.Agent),
		Model:   cmp.Or(out.Model, intent.Model),
		Session: cmp.Or(out.Session, intent.Session),
		Image:   intent.Image,
		Class:   string(out.Class),
		Finish:  out.Finish,
		Reason:  out.Reason,
		Exit:    out.Exit,
		Started: out.Started,
		Ended:   out.Ended,
		Report:  out.Report,
		Verdict: found.Verdict,
	}
	if !ended { // the outcome was set aside, and the call was made again
		c.Class, c.Reason = string(outcome.Lost), "its outcome was not recorded"
	}
	c.Boundary, c.App, err = proofs(p, rec.Dir)
	return c, true, err
}

// auditReplays returns the audit records of the replays under a call's key, sorted by what they
// ran against and by time.
func auditReplays(p state.Project, key string) (all []audit.Replay, err error) {
	names, err := replaysOf(p, key)
	if err != nil {
		return nil, err
	}
	at := map[string]time.Time{}
	for _, name := range names {
		dir := filepath.Join(p.Call(key), name)
		k, ok, err := roles.Read[keptReplay](roles.Record{Dir: dir}, replayFile)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // it was forgotten, or abl was killed during the replay
		}
		r := audit.Replay{
			Name:    strings.TrimPrefix(name, replayDir),
			Call:    key,
			Against: string(k.Against),
			Commit:  k.Commit,
			Exit:    k.Exit,
			Late:    k.Late,
			Gone:    k.Gone,
			Failed:  k.AppFailed,
			MS:      k.Took.Milliseconds(),
		}
		if k.AppFailed == "" {
			err = auditOutput(p, dir, &r)
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
	// The replays that are not against the app run in parallel, so time does not order them.
	slices.SortStableFunc(all, func(a, b audit.Replay) int {
		return cmp.Or(cmp.Compare(slices.Index(order, Against(a.Against)), slices.Index(order, Against(b.Against))),
			at[a.Name].Compare(at[b.Name]))
	})
	return all, nil
}

// auditOutput counts the test results in a replay's output.
func auditOutput(p state.Project, dir string, r *audit.Replay) (err error) {
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

// proofs returns the proofs of the container of a record and of the app's container.
func proofs(p state.Project, dir string) (own, app *audit.Proof, err error) {
	if own, err = proofIn(p, dir); err == nil {
		app, err = proofIn(p, filepath.Join(dir, "app"))
	}
	return own, app, err
}

// proofIn returns the proof of the boundary in a record, or nil.
func proofIn(p state.Project, dir string) (*audit.Proof, error) {
	b, ok, err := roles.Record{Dir: dir}.Boundary()
	if err != nil || !ok {
		return nil, err
	}
	_, file, err := fileIn(p, dir, roles.BoundaryFile, 0)
	if err != nil || file == nil {
		return nil, err
	}
	proof := &audit.Proof{File: *file, Container: b.Container, At: b.At, Weak: b.Weak, Unheard: b.Unheard, Failed: b.Failed}
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

// fileIn reads at most most bytes of a file of a record, and returns its path and the checksum
// of the whole file. It returns nil if the file is missing.
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

// maxSeen is the number of bytes of a witness's record that Exchanges reads.
const maxSeen = 8 << 20

// Exchanges returns the request and the response of each exchange that the witness recorded in
// an iteration, by its text in a finding. clean removes secrets and control characters from them.
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
