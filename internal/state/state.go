// Package state knows what a project is: its paths, state.json with where every
// phase stands, and the events that a run tells, one a fact (docs/events.md).
// state.json is written whole and durably before the effects it announces, so
// that a killed abl goes on from it. What the statuses lead to is decided
// elsewhere; here they are words. docs/state-format.md describes every field.
package state

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"abl/internal/failedspecs"
)

// Version is the format that this abl writes.
const Version = 1

// MaxBytes is the largest state.json that is read; an honest one stays far below.
const MaxBytes = 16 << 20

// File is the content of state.json.
type File struct {
	Version int               `json:"version"`
	Project string            `json:"project"` // random id of 12 hex digits, the label of all that abl makes on the engine
	Root    string            `json:"root"`    // real path of the project when the file was made
	Updated time.Time         `json:"updated,omitzero"`
	Phases  map[string]*Phase `json:"phases"`          // by number in decimal
	Lease   *json.RawMessage  `json:"lease,omitempty"` // ownership lent to a role and not yet given back

	Branch string `json:"branch,omitempty"` // of the person's repository, which the source was cloned from
	Start  string `json:"start,omitempty"`  // the commit of it that was cloned

	Published string `json:"published,omitempty"` // commit of refs/abl/state that this is, or went on from

	// Git is what steers git in each role's repository, as last shown to the person: role, path in .git, hash.
	Git map[string]map[string]string `json:"git,omitempty"`
}

// Status is a resting point of a phase.
type Status string

// The resting points. One that ends in -ing says that the attempt was begun.
const (
	Ready      Status = "ready"
	Building   Status = "building"
	Built      Status = "built"
	Verifying  Status = "verifying"
	Verified   Status = "verified"
	Passed     Status = "passed"
	Stale      Status = "stale" // it passed, and an earlier phase has passed on another source since
	Refuted    Status = "refuted"
	Stuck      Status = "stuck"
	Unverified Status = "unverified"
)

// Statuses are all of them, in the order in which a phase can meet them.
func Statuses() []Status {
	return []Status{Ready, Building, Built, Verifying, Verified, Passed, Stale, Refuted, Stuck, Unverified}
}

// Phase is where one phase stands.
type Phase struct {
	Status        Status            `json:"status"`
	Round         int               `json:"round"`                   // of iterations, from 1; 0 before the first
	Iteration     int               `json:"iteration"`               // within the round, from 1
	Step          int               `json:"step"`                    // over all rounds, from 1; the X of step-X
	Attempt       int               `json:"attempt"`                 // of the current call, from 1
	Tries         int               `json:"tries,omitempty"`         // attempts at the current call that ended badly, in a row
	Asked         bool              `json:"asked,omitempty"`         // the role was asked once more for what it left out
	Class         string            `json:"class,omitempty"`         // how the last call ended (docs/architecture.md)
	Back          time.Time         `json:"back,omitzero"`           // when the provider wants to be asked again, as the last call was told
	NeedsPerson   bool              `json:"needs_person,omitempty"`  // the last call ended for want of something that only a person can give
	Grown         bool              `json:"grown,omitempty"`         // the last call's prompt became too long during the call
	Outage        *Outage           `json:"outage,omitempty"`        // the provider or the engine is waited for
	Fallback      map[string]int    `json:"fallback,omitempty"`      // by role: which further model of its chain is used, from 1
	Call          string            `json:"call,omitempty"`          // id of the call in flight, else of the last one
	VerifierOnly  bool              `json:"verifier_only,omitempty"` // nothing to mend: this iteration has no Builder call
	Recheck       bool              `json:"recheck,omitempty"`       // what it passed with is replayed, and no agent is called
	Started       time.Time         `json:"started,omitzero"`
	Ended         time.Time         `json:"ended,omitzero"`
	SrcCommit     string            `json:"src_commit,omitempty"`
	TestsCommit   string            `json:"tests_commit,omitempty"`
	Approved      bool              `json:"approved,omitempty"`       // by a person
	ReportMissing bool              `json:"report_missing,omitempty"` // the Builder left none for its last call
	Note          string            `json:"note,omitempty"`           // one sentence for the person
	History       []IterationRecord `json:"history,omitempty"`        // oldest first

	HeldTo
	Judged
}

// OnItsWay says that the phase has begun and rests nowhere yet.
func (p Phase) OnItsWay() bool {
	return slices.Contains([]Status{Building, Built, Verifying, Verified, Refuted}, p.Status)
}

// HeldTo are the texts of its spec that a phase works on and has passed with.
type HeldTo struct {
	SpecSHA    string `json:"spec_sha,omitempty"`    // hash of the spec that the round works on
	SpecSize   int    `json:"spec_size,omitempty"`   // bytes under that hash, to tell an append from an edit
	Settings   string `json:"settings,omitempty"`    // hash of the settings, prompts and description that the round works with
	PassedSHA  string `json:"passed_sha,omitempty"`  // hash of the spec that it passed with last
	PassedSize int    `json:"passed_size,omitempty"` // bytes under that hash
}

// Judged is what the last verdict came to, for the next call to be told.
type Judged struct {
	// what was observed when the app did not start
	AppFailed string `json:"app_failed,omitempty"`
	// the last lines that the app printed before that, for the next Builder
	AppPrinted string `json:"app_printed,omitempty"`
	// contracts of earlier phases that a replay has seen broken
	Regressed []failedspecs.Entry `json:"regressed,omitempty"`
	// pass, fail or unverified
	LastVerdict string `json:"last_verdict,omitempty"`
	// what a believable verdict lacked; told to the Verifier when it is asked again
	Why []string `json:"why,omitempty"`
	// answers of the Verifier in a row that lacked the same, the last one included
	Repeated int `json:"repeated,omitempty"`
	// of the last refutation
	Failed []failedspecs.Entry `json:"failed,omitempty"`
	// what the next Builder is told when the last iterations moved nothing
	Stalled string `json:"stalled,omitempty"`
}

// Outage is a time without a good call because the provider or the engine is away.
// It is replaced whole, never changed.
type Outage struct {
	Class  string    `json:"class"` // how the last call ended
	Since  time.Time `json:"since"`
	Tries  int       `json:"tries"`   // calls in a row that it ended
	UsedMS int64     `json:"used_ms"` // of loop.outage_budget: those calls and the waits after them, the one that is on included
	WaitMS int64     `json:"wait_ms"` // how long the wait is that is on
	Until  time.Time `json:"until,omitzero"`
}

// IterationRecord is one iteration that came to a verdict.
type IterationRecord struct {
	Round       int       `json:"round"`
	Iteration   int       `json:"iteration"`
	Step        int       `json:"step"`
	Verdict     string    `json:"verdict"` // pass, fail or unverified
	Entries     int       `json:"entries"` // failed specs reported
	SrcCommit   string    `json:"src_commit,omitempty"`
	TestsCommit string    `json:"tests_commit,omitempty"`
	When        time.Time `json:"when"`
	Call        string    `json:"call,omitempty"` // the Verifier's, whose record has the finding
	Tree        string    `json:"tree,omitempty"` // stands for the source that was tested, the Builder's reports left out

	VerifierOnly bool `json:"verifier_only,omitempty"` // it had no Builder
}

// Phase is where phase n rests; one that never ran is ready.
func (f *File) Phase(n int) Phase {
	if p := f.Phases[fmt.Sprint(n)]; p != nil {
		return *p
	}
	return Phase{Status: Ready}
}

// Begun says whether a phase has begun, and with it both histories.
func (f *File) Begun() bool {
	for _, p := range f.Phases {
		if p.Round > 0 {
			return true
		}
	}
	return false
}

// Commits are one of the source and one of the tests that the phases stand on, ""
// where there is none yet.
func (f *File) Commits() (src, tests string) {
	for _, p := range f.Phases {
		src, tests = cmp.Or(src, p.SrcCommit), cmp.Or(tests, p.TestsCommit)
	}
	return src, tests
}

// New is the state of a project without any phase begun. root is the project's
// directory; its real path is kept where it can be found.
func New(root string) *File {
	if real, err := Real(root); err == nil {
		root = real
	}
	id := make([]byte, 6)
	rand.Read(id) // never fails
	return &File{Version: Version, Project: hex.EncodeToString(id), Root: root, Phases: map[string]*Phase{}}
}
