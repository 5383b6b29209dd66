package workspace

import (
	"abl/orchestrator/workspace/gitdir"
	"abl/orchestrator/workspace/scan"
)

// ErrForeign marks a history that a person must decide about first: the
// message says what stands in the way and what to do.
var ErrForeign = gitdir.ErrForeign

// ErrTooLarge marks a tree beyond Options.MaxEntries.
var ErrTooLarge = scan.ErrTooLarge
