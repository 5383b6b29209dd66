// Package audit reads and writes the audit record. The record of an iteration has its specs, its results
// and the evidence for them, as JSON. abl writes it durably before the state with the verdict, where no
// role can reach it. docs/audit-record.md describes every field, and docs/audit-record.schema.json is
// its schema.
package audit

import (
	"time"

	"abl/internal/failedspecs"
)

// Version is the version of the format.
const Version = 1

// Record describes one iteration and its verdict.
type Record struct {
	Version   int                 `json:"version"`
	Project   string              `json:"project"` // id of state.json
	Phase     int                 `json:"phase"`
	Title     string              `json:"title"`
	Round     int                 `json:"round"`
	Iteration int                 `json:"iteration"` // within the round
	Step      int                 `json:"step"`      // over all rounds, the X of step-X
	Decided   time.Time           `json:"decided"`
	Verdict   string              `json:"verdict"`                  // pass, fail or unverified
	Status    string              `json:"status"`                   // the status of the phase after it
	Kind      string              `json:"kind,omitempty"`           // of the app: http, tcp or command; missing in older records
	Evidence  string              `json:"evidence"`                 // verify.evidence: required or off
	Strength  string              `json:"strength_shown,omitempty"` // whether tests detect altered responses: shown for 11 of 14 contracts
	ByReplay  bool                `json:"by_replay,omitempty"`      // the entries are abl's own, and a pass is based only on replays
	Missing   []string            `json:"missing,omitempty"`        // the missing evidence
	Notes     []string            `json:"notes,omitempty"`          // for the user
	Entries   []failedspecs.Entry `json:"entries,omitempty"`        // what failed, in the spec's language
	Commits   Commits             `json:"commits"`
	Specs     []Spec              `json:"specs"`
	Contracts []Contract          `json:"contracts"`
	Earlier   []Earlier           `json:"earlier,omitempty"` // results of the tests of earlier phases before the Verifier's call
	Replays   []Replay            `json:"replays"`           // in their order
	Calls     []Call              `json:"calls"`
}

// Commits are the judged commit and the commit of the tests.
type Commits struct {
	Source string `json:"source"`
	Tree   string `json:"tree,omitempty"` // of Source: the files that the app was started from
	Tests  string `json:"tests"`
	Tag    string `json:"tag,omitempty"` // of both commits after a pass
}

// Spec is a spec of the iteration.
type Spec struct {
	Phase  int    `json:"phase"`
	Title  string `json:"title"`
	File   string `json:"file"`   // relative to the project
	SHA256 string `json:"sha256"` // of the text with LF line ends
	Bytes  int    `json:"bytes"`  // of the hashed text
}

// Clause is a contract at the time of the verdict.
type Clause struct {
	ID      string `json:"id"`
	Phase   int    `json:"phase"`
	Line    int    `json:"line"`
	Says    string `json:"says"` // the whole text on one line
	Absence bool   `json:"absence,omitempty"`
}

// Held has the specs of a verdict. abl stores it with the verdict, because the specs may change before a
// phase resumes.
type Held struct {
	Decided  time.Time `json:"decided"`
	Evidence string    `json:"evidence"`
	Specs    []Spec    `json:"specs"`
	Clauses  []Clause  `json:"clauses"`
}

// The results of a contract.
const (
	Pass    = "pass"
	Fail    = "fail"
	Unknown = "unknown" // not measured
)

// The sources of a result.
const (
	ByReplay   = "replay"
	ByVerifier = "verifier"
)

// Contract is a contract with its result.
type Contract struct {
	Clause
	Result string `json:"result"`       // pass, fail or unknown
	By     string `json:"by,omitempty"` // the source of the result: replay or verifier; "" for unknown
	Finding
}

// Finding is the result of the replays for one contract. docs/audit-record.md lists the values. The zero
// value means that it was not replayed.
type Finding struct {
	Is       string   `json:"is,omitempty"`       // verified, weak, failed, flaky and so on
	Why      string   `json:"why,omitempty"`      // the reason
	Test     string   `json:"test,omitempty"`     // its line in the output of the first replay: line 3: ok 3 - P1.C3
	Runs     []string `json:"runs,omitempty"`     // of the replays against the app: ok, not ok, missing, twice or void
	Entries  int      `json:"entries,omitempty"`  // of failed_specs.md that name it
	Input    string   `json:"input,omitempty"`    // of the first run that was not ok, or of the entry
	Observed string   `json:"observed,omitempty"` // of the same run or entry
	Under    []string `json:"under,omitempty"`    // altered apps under which its test still passes: away, empty 200, 500
	Witness  string   `json:"witness,omitempty"`  // the observed exchange: POST /notes → 201
	Unread   bool     `json:"unread,omitempty"`   // the contract has no request and response that abl can read
	Allowed  bool     `json:"allowed,omitempty"`  // it counts although it is weak or unread
	Unshown  string   `json:"unshown,omitempty"`  // why no altered response was detected: weak, not reached and so on
}

// Earlier is a contract of an earlier phase, with the result of the tests with which that phase passed.
type Earlier struct {
	Contract string `json:"contract"`
	Suite    string `json:"suite"` // phaseN/passed
	Finding
}

// Replay is one run of saved tests.
type Replay struct {
	Name     string   `json:"name"`             // app-1, no app, phase1-app-1 …
	Call     string   `json:"call"`             // the call of the tests
	Against  string   `json:"against"`          // app, no app, empty, 500 …
	Commit   string   `json:"commit,omitempty"` // of the tests; missing for commits.tests
	Exit     int      `json:"exit"`
	Late     bool     `json:"late,omitempty"`
	Gone     string   `json:"gone,omitempty"`       // why the tests did not run
	Failed   string   `json:"app_failed,omitempty"` // the app did not start
	MS       int64    `json:"ms"`
	Tests    int      `json:"tests"` // test lines in the output
	OK       int      `json:"ok"`    // of them
	Output   *File    `json:"output,omitempty"`
	Boundary *Proof   `json:"boundary,omitempty"` // of the tests' container
	App      *Proof   `json:"app_boundary,omitempty"`
	Doubts   []string `json:"doubts,omitempty"` // why no ok in the output counts
}

// Call is one call of an agent.
type Call struct {
	Key      string    `json:"key"`
	Role     string    `json:"role"`
	Attempt  int       `json:"attempt"`
	Agent    string    `json:"agent"`
	Model    string    `json:"model"`
	Session  string    `json:"session,omitempty"`
	Image    string    `json:"image"`
	Class    string    `json:"class"`            // how it ended (docs/faults.md)
	Finish   string    `json:"finish,omitempty"` // finish reason of the last response, in the provider's term
	Reason   string    `json:"reason,omitempty"`
	Exit     int       `json:"exit"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Report   string    `json:"report,omitempty"`  // the run report of the call
	Verdict  string    `json:"verdict,omitempty"` // of this attempt
	Boundary *Proof    `json:"boundary,omitempty"`
	App      *Proof    `json:"app_boundary,omitempty"`
}

// Proof is the result of the checks of a container. File contains the checks.
type Proof struct {
	File      File      `json:"file"`
	Container string    `json:"box"`
	At        time.Time `json:"at"`
	Image     string    `json:"image,omitempty"` // the engine's id of its image
	Checks    int       `json:"checks"`
	Held      int       `json:"held"`
	Weak      string    `json:"weak_network,omitempty"` // why the networks are unproven, which the user allowed
	Unheard   bool      `json:"unheard,omitempty"`      // the access to this machine was not checked
	Failed    string    `json:"failed,omitempty"`       // why the container was stopped
}

// File is a file of a call's record.
type File struct {
	Path   string `json:"path"` // relative to the project
	SHA256 string `json:"sha256"`
}
