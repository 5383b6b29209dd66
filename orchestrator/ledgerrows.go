package orchestrator

import (
	"abl/internal/ledger"
	"abl/roles"
)

// Rows are the ledger's rows of a call that is not a phase's: they are counted
// and priced like those of one.
func Rows(phase, step int, o roles.Outcome) []ledger.Row { return rows(phase, step, o) }
