// Package state defines the paths of a project, its state file and the events of a run.
//
// abl writes state.json atomically and durably before it does what the new state announces, so
// that it can resume after a kill. Package orchestrator decides what follows from a status.
// docs/state-format.md describes every field, docs/events.md the events.
package state

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"abl/internal/failedspecs"
)

// Version is the format version that this abl reads and writes.
const Version = 1

// MaxBytes is the maximum size of state.json. Real files are much smaller.
const MaxBytes = 16 << 20

// File is the content of state.json.
type File struct {
	Version int               `json:"version"`
	Project string            `json:"project"` // random, 12 hex digits; a label of every engine object
	Root    string            `json:"root"`    // real path of the project when abl created the file
	Updated time.Time         `json:"updated,omitzero"`
	Phases  map[string]*Phase `json:"phases"`          // by number in decimal
	Owners  *json.RawMessage  `json:"lease,omitempty"` // ownership that abl passed to a role and has to take back

	Branch string `json:"branch,omitempty"` // branch of the user's repository from which abl cloned the source
	Start  string `json:"start,omitempty"`  // commit of Branch that abl cloned

	Published string `json:"published,omitempty"` // commit of refs/abl/state with this state or its predecessor

	// Git lists the files that steer git in each role's repository, as last shown to the user:
	// role, path in .git, hash.
	Git map[string]map[string]string `json:"git,omitempty"`
}

// Status is the status of a phase.
type Status string

// The statuses of a phase. Building and Verifying mean that the call has begun.
const (
	Ready      Status = "ready"
	Building   Status = "building"
	Built      Status = "built"
	Verifying  Status = "verifying"
	Verified   Status = "verified"
	Passed     Status = "passed"
	Stale      Status = "stale" // passed, but an earlier phase passed later with another source
	Refuted    Status = "refuted"
	Stuck      Status = "stuck"
	Unverified Status = "unverified"
)

// Statuses returns all statuses in the usual order of a phase.
func Statuses() []Status {
	return []Status{Ready, Building, Built, Verifying, Verified, Passed, Stale, Refuted, Stuck, Unverified}
}

// Phase is the state of one phase.
type Phase struct {
	Status    Status `json:"status"`
	Round     int    `json:"round"`           // of iterations, from 1; 0 before the first
	Iteration int    `json:"iteration"`       // within the round, from 1
	Step      int    `json:"step"`            // over all rounds, from 1; the X of step-X
	Attempt   int    `json:"attempt"`         // of the current call, from 1
	Tries     int    `json:"tries,omitempty"` // failed attempts at the current call, in a row
	Asked     bool   `json:"asked,omitempty"` // abl called the role again for missing output
	Class     string `json:"class,omitempty"` // how the last call ended (docs/faults.md)
	// Back is when to call again, according to the provider's last response.
	Back time.Time `json:"back,omitzero"`
	// NeedsPerson is set if the last call failed for a reason that the user must remove.
	NeedsPerson bool `json:"needs_person,omitempty"`
	// Grown is set if the last call's prompt became too long during the call.
	Grown         bool              `json:"grown,omitempty"`
	Outage        *Outage           `json:"outage,omitempty"`        // abl waits for the provider or the engine
	Fallback      map[string]int    `json:"fallback,omitempty"`      // role to index of its fallback model, from 1
	Call          string            `json:"call,omitempty"`          // id of the running call, else of the last one
	VerifierOnly  bool              `json:"verifier_only,omitempty"` // nothing to fix: this iteration has no Builder call
	Recheck       bool              `json:"recheck,omitempty"`       // abl replays the passed tests and calls no agent
	Started       time.Time         `json:"started,omitzero"`
	Ended         time.Time         `json:"ended,omitzero"`
	SrcCommit     string            `json:"src_commit,omitempty"`
	TestsCommit   string            `json:"tests_commit,omitempty"`
	Approved      bool              `json:"approved,omitempty"`       // by the user
	ReportMissing bool              `json:"report_missing,omitempty"` // the last Builder call left no report
	Note          string            `json:"note,omitempty"`           // one sentence for the user
	History       []IterationRecord `json:"history,omitempty"`        // oldest first

	HeldTo
	Judged
}

// OnItsWay reports whether the phase has begun and has no result yet.
func (p Phase) OnItsWay() bool {
	return slices.Contains([]Status{Building, Built, Verifying, Verified, Refuted}, p.Status)
}

// Current returns the key of the call that the phase is in. Between calls it returns "".
func (p Phase) Current() string {
	if p.Status != Building && p.Status != Verifying {
		return ""
	}
	return p.Call
}

// HeldTo identifies the specs that a phase works with and last passed with.
type HeldTo struct {
	SpecSHA    string `json:"spec_sha,omitempty"`    // hash of the round's spec
	SpecSize   int    `json:"spec_size,omitempty"`   // its size in bytes, which tells an append from an edit
	Settings   string `json:"settings,omitempty"`    // of the round: see orchestrator.Asked
	PassedSHA  string `json:"passed_sha,omitempty"`  // hash of the spec with which the phase last passed
	PassedSize int    `json:"passed_size,omitempty"` // its size in bytes
}

// Judged is the result of the last verdict, for the prompt of the next call.
type Judged struct {
	// AppFailed says how the app failed to start.
	AppFailed string `json:"app_failed,omitempty"`
	// AppPrinted is the last lines that the app printed before that, for the next Builder.
	AppPrinted string `json:"app_printed,omitempty"`
	// Regressed lists the contracts of earlier phases that failed in a replay.
	Regressed []failedspecs.Entry `json:"regressed,omitempty"`
	// LastVerdict is pass, fail or unverified.
	LastVerdict string `json:"last_verdict,omitempty"`
	// Why lists the reasons why the last verdict does not count, for the next Verifier.
	Why []string `json:"why,omitempty"`
	// Repeated counts the last verdicts in a row that failed for the same reasons.
	Repeated int `json:"repeated,omitempty"`
	// Failed lists the contracts that the Verifier last refuted.
	Failed []failedspecs.Entry `json:"failed,omitempty"`
	// Stalled is a message for the next Builder: the last iterations made no progress.
	Stalled string `json:"stalled,omitempty"`
}

// Outage is a time without a successful call because the provider or the engine is down.
// It is immutable: abl replaces it as a whole.
type Outage struct {
	Class  string    `json:"class"` // how the last call ended
	Since  time.Time `json:"since"`
	Tries  int       `json:"tries"`   // failed calls in a row
	UsedMS int64     `json:"used_ms"` // of loop.outage_budget: the failed calls and all waits, with the current one
	WaitMS int64     `json:"wait_ms"` // length of the current wait
	Until  time.Time `json:"until,omitzero"`
}

// IterationRecord is one iteration with a verdict.
type IterationRecord struct {
	Round       int       `json:"round"`
	Iteration   int       `json:"iteration"`
	Step        int       `json:"step"`
	Verdict     string    `json:"verdict"` // pass, fail or unverified
	Entries     int       `json:"entries"` // failed specs reported
	SrcCommit   string    `json:"src_commit,omitempty"`
	TestsCommit string    `json:"tests_commit,omitempty"`
	When        time.Time `json:"when"`
	Call        string    `json:"call,omitempty"` // the Verifier's call; its record has the finding
	Tree        string    `json:"tree,omitempty"` // identifies the tested source without the Builder's reports

	VerifierOnly bool `json:"verifier_only,omitempty"` // without a Builder call
}

// Phase returns the state of phase n. A phase that never ran is ready.
func (f *File) Phase(n int) Phase {
	if p := f.Phases[fmt.Sprint(n)]; p != nil {
		return *p
	}
	return Phase{Status: Ready}
}

// Begun returns the phases that have begun, in order. If there is one, both repositories have a history.
func (f *File) Begun() (all []int) {
	for key, p := range f.Phases {
		if n, err := strconv.Atoi(key); err == nil && p.Round > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// Commits returns a source commit and a tests commit that some phase recorded, or "" if no phase
// has one.
func (f *File) Commits() (src, tests string) {
	for _, p := range f.Phases {
		src, tests = cmp.Or(src, p.SrcCommit), cmp.Or(tests, p.TestsCommit)
	}
	return src, tests
}

// New returns the state of a new project with a random id. It stores the real path of root, or
// root itself if it cannot be resolved.
func New(root string) *File {
	if real, err := Real(root); err == nil {
		root = real
	}
	id := make([]byte, 6)
	rand.Read(id) // never fails
	return &File{
		Version: Version,
		Project: hex.EncodeToString(id),
		Root:    root,
		Phases:  map[string]*Phase{},
	}
}
