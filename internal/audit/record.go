// Package audit keeps the audit record: for each iteration what it was held to,
// what was found and what that stands on, as JSON. abl writes it, whole and
// durably, before the state that announces the verdict; no role can reach it.
// Nothing is decided in it. docs/audit-record.md describes every field, and
// docs/audit-record.schema.json is its schema.
package audit

import (
	"time"

	"abl/internal/failedspecs"
)

// Version is the format that this abl writes.
const Version = 1

// Record is one iteration as it was judged.
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
	Status    string              `json:"status"`                   // where the phase came to rest with it
	Kind      string              `json:"kind,omitempty"`           // of the app: http, tcp or command; older records have none
	Evidence  string              `json:"evidence"`                 // verify.evidence: required or off
	Strength  string              `json:"strength_shown,omitempty"` // that tests notice other answers: shown for 11 of 14 contracts
	ByReplay  bool                `json:"by_replay,omitempty"`      // the entries are abl's own; a pass has come of replays alone
	Missing   []string            `json:"missing,omitempty"`        // what a believable verdict lacks
	Notes     []string            `json:"notes,omitempty"`          // what a person should know besides
	Entries   []failedspecs.Entry `json:"entries,omitempty"`        // what failed, in the spec's language
	Commits   Commits             `json:"commits"`
	Specs     []Spec              `json:"specs"`
	Contracts []Contract          `json:"contracts"`
	Earlier   []Earlier           `json:"earlier,omitempty"` // what the tests of earlier phases showed before a Verifier was called
	Replays   []Replay            `json:"replays"`           // in the order in which they were made
	Calls     []Call              `json:"calls"`
}

// Commits is what was judged, and with which tests.
type Commits struct {
	Source string `json:"source"`
	Tree   string `json:"tree,omitempty"` // of Source: the files that the app was started from
	Tests  string `json:"tests"`
	Tag    string `json:"tag,omitempty"` // that names both on a pass
}

// Spec is a spec that the iteration was held to.
type Spec struct {
	Phase  int    `json:"phase"`
	Title  string `json:"title"`
	File   string `json:"file"`   // relative to the project
	SHA256 string `json:"sha256"` // of the text with LF line ends
	Bytes  int    `json:"bytes"`  // under that hash
}

// Clause is a contract as it stood when the iteration was judged.
type Clause struct {
	ID      string `json:"id"`
	Phase   int    `json:"phase"`
	Line    int    `json:"line"`
	Says    string `json:"says"` // on one line, complete
	Absence bool   `json:"absence,omitempty"`
}

// Held is what a verdict was held to, noted when it is drawn: a resumed phase
// finds it there, whatever became of the specs since.
type Held struct {
	Decided  time.Time `json:"decided"`
	Evidence string    `json:"evidence"`
	Specs    []Spec    `json:"specs"`
	Clauses  []Clause  `json:"clauses"`
}

// What is known of a contract.
const (
	Pass    = "pass"
	Fail    = "fail"
	Unknown = "unknown" // never a guess
)

// Who says so.
const (
	ByReplay   = "replay"
	ByVerifier = "verifier"
)

// Contract is a contract with what was found.
type Contract struct {
	Clause
	Result string `json:"result"`       // pass, fail or unknown
	By     string `json:"by,omitempty"` // whose word the result is: replay or verifier; "" for unknown
	Finding
}

// Finding is what replays came to on one contract (docs/audit-record.md has the
// words). The zero value: it was not replayed.
type Finding struct {
	Is       string   `json:"is,omitempty"`       // verified, weak, failed, flaky and so on
	Why      string   `json:"why,omitempty"`      // in plain words
	Test     string   `json:"test,omitempty"`     // its line in what the tests printed in the first replay: line 3: ok 3 - P1.C3
	Runs     []string `json:"runs,omitempty"`     // of the replays against the app: ok, not ok, missing, twice or void
	Entries  int      `json:"entries,omitempty"`  // of failed_specs.md that name it
	Input    string   `json:"input,omitempty"`    // of the first run that was not ok, or of the entry
	Observed string   `json:"observed,omitempty"` // likewise
	Under    []string `json:"under,omitempty"`    // where its test is ok besides: away, empty 200, 500
	Witness  string   `json:"witness,omitempty"`  // the exchange that shows it, as POST /notes → 201
	Unread   bool     `json:"unread,omitempty"`   // abl can read no request with an answer in it: no exchange was looked for
	Allowed  bool     `json:"allowed,omitempty"`  // it is weak or not read, and counts all the same
	Unshown  string   `json:"unshown,omitempty"`  // why it is not shown that its test notices other answers: weak, not reached and so on
}

// Earlier is a contract of an earlier phase, as the tests that this phase passed
// with found it.
type Earlier struct {
	Contract string `json:"contract"`
	Suite    string `json:"suite"` // phaseN/passed
	Finding
}

// Replay is one run of saved tests.
type Replay struct {
	Name     string   `json:"name"`             // app-1, no app, phase1-app-1 …
	Call     string   `json:"call"`             // whose tests, or whose turn, it was
	Against  string   `json:"against"`          // app, no app, empty, 500 …
	Commit   string   `json:"commit,omitempty"` // of the tests; absent: as this call left them, which is commits.tests
	Exit     int      `json:"exit"`
	Late     bool     `json:"late,omitempty"`
	Gone     string   `json:"gone,omitempty"`       // why nothing could be run
	Failed   string   `json:"app_failed,omitempty"` // the app did not start
	MS       int64    `json:"ms"`
	Tests    int      `json:"tests"` // test lines that it printed
	OK       int      `json:"ok"`    // of them
	Output   *File    `json:"output,omitempty"`
	Boundary *Proof   `json:"boundary,omitempty"` // of the tests' container
	App      *Proof   `json:"app_boundary,omitempty"`
	Doubts   []string `json:"doubts,omitempty"` // for which no ok of the output is believed
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
	Class    string    `json:"class"`            // how it ended (docs/architecture.md)
	Finish   string    `json:"finish,omitempty"` // how its last answer ended, in the provider's word
	Reason   string    `json:"reason,omitempty"`
	Exit     int       `json:"exit"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	Report   string    `json:"report,omitempty"`  // the run report that it left
	Verdict  string    `json:"verdict,omitempty"` // that was drawn from this attempt
	Boundary *Proof    `json:"boundary,omitempty"`
	App      *Proof    `json:"app_boundary,omitempty"`
}

// Proof is the proof that a container was what abl meant it to be. The checks
// themselves stand in the file.
type Proof struct {
	File    File      `json:"file"`
	Box     string    `json:"box"`
	At      time.Time `json:"at"`
	Image   string    `json:"image,omitempty"` // the engine's id of the image that it was made of
	Checks  int       `json:"checks"`
	Held    int       `json:"held"`
	Weak    string    `json:"weak_network,omitempty"` // why the networks are not proven; the person allowed it
	Unheard bool      `json:"unheard,omitempty"`      // nobody listened whether it reaches this machine
	Failed  string    `json:"failed,omitempty"`       // why it was not let go on
}

// File is a file of a call's record.
type File struct {
	Path   string `json:"path"` // relative to the project
	SHA256 string `json:"sha256"`
}
