// Package exit holds the exit codes of abl: the one table from which help
// texts, documentation and the process itself take them, which error means which
// (rules.go), and the signals that end a run. Nothing of a run is decided here.
package exit

// The exit codes. All but Bug and Usage leave something that the same command
// can go on from.
const (
	Passed      = 0
	Bug         = 1
	Usage       = 2
	Stuck       = 3
	Unverified  = 4
	Agent       = 5
	Budget      = 6
	Environment = 7
	Boundary    = 8
	Person      = 9
	Busy        = 11
	Away        = 75
	HUP         = 129
	INT         = 130
	TERM        = 143
)

// Entry is one row of the table.
type Entry struct {
	Code    int
	Meaning string
}

// Entries are all exit codes of abl, in ascending order.
func Entries() []Entry {
	return []Entry{
		{Passed, "passed"},
		{Bug, "unexpected error (a bug)"},
		{Usage, "usage, config or spec error; nothing was started"},
		{Stuck, "stuck: contracts still fail"},
		{Unverified, "unverified: no believable verdict"},
		{Agent, "the agent failed: login refused, or crash, memory or time after retries"},
		{Budget, "budget reached"},
		{Environment, "the environment failed: engine, image, disk or network"},
		{Boundary, "the boundary around the agents could not be established"},
		{Person, "a person must decide: state damaged or from a newer abl, history or tree changed by hand, or a spec edited while its phase runs"},
		{Busy, "another abl holds the project"},
		{Away, "the provider refused or was away for too long; try again later"},
		{HUP, "hung up; state saved"},
		{INT, "interrupted; state saved"},
		{TERM, "terminated; state saved"},
	}
}
