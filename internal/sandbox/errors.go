package sandbox

import "errors"

// What a caller may need to tell apart; everything else is an engine's failure.
var (
	ErrNotFound    = errors.New("no such container")
	ErrExists      = errors.New("a container of this name exists")
	ErrNoImage     = errors.New("image missing")
	ErrUnreachable = errors.New("engine not reachable")
	ErrWeak        = errors.New("engine cannot give the isolation abl promises")
	ErrUnproven    = errors.New("the boundary is not proven")
)
