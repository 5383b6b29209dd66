package learn

import (
	"abl/cmd/internal/money"
	"abl/orchestrator/gateway"
)

// caps are those of a call, with what is used of them. A session counts as a
// phase, a project as one.
func (b *bench) caps(key string) ([]money.Cap, error) {
	used, err := money.Spent(b.project, b.book.List, b.session, key)
	return money.Caps(b.conf.Budget, used), err
}

// admit is asked before every call whether there is anything left to spend.
func (b *bench) admit(key string) error {
	caps, err := b.caps(key)
	if err != nil {
		return err
	}
	return money.Admit(caps, money.Words{Again: "the same command and", Safe: "what was done is kept"}, b.warner.Warn)
}

// left is what a call may spend, as its gateway is told.
func (b *bench) left(key string) (gateway.Budget, error) {
	caps, err := b.caps(key)
	return money.Left(b.conf.Limits.Requests, caps), err
}
