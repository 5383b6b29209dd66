package evidence

import (
	"abl/internal/spec"
	"abl/internal/witness"
)

// Read returns a contract of a spec with the exchange and the run that it describes. It first
// ignores code marks around a whole result: `200` is a status. If that gives nothing, the marks
// count: `pong` is a text.
func Read(c spec.Contract) Contract {
	read := Contract{ID: c.ID, Says: c.Says(), Absence: c.Absence}
	action, marked := c.Marked()
	for _, result := range []string{c.Result, marked} {
		if claim, ok := witness.ReadClaim(c.Under, c.Action, result); ok && read.Claim == nil {
			read.Claim = &claim
		}
		if run, ok := witness.ReadRun(action, result); ok && read.Run == nil {
			read.Run = &run
		}
	}
	return read
}
