package learn

import (
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/orchestrator"
	"abl/orchestrator/gateway"
	"abl/orchestrator/learner"
	"abl/orchestrator/ledger"
	"abl/orchestrator/project"
	"abl/roles"
)

// budget is what a session may spend, and the ledger in which it stands. A session
// counts as a phase, a project as one.
type budget struct {
	conf    *config.Loaded
	project project.Project
	session int
	ledger  money.Book
	warner  money.Warner
}

func openBudget(w *work, s learner.State) (*budget, error) {
	list, err := money.Prices(w.root, w.conf)
	if err != nil {
		return nil, err
	}
	b := &budget{conf: w.conf, project: w.home.Project(), session: s.Session}
	b.ledger = money.Book{Ledger: ledger.Open(b.project.Ledger()), List: list, Hide: w.in.Outlet.Redact, Tell: w.tell.Note}
	b.warner.Tell = w.tell.Note
	return b, b.ledger.Ready()
}

// caps are those of a call, with what is used of them.
func (b *budget) caps(key string) ([]money.Cap, error) {
	used, err := money.Spent(b.project, b.ledger.List, b.session, key)
	return money.Caps(b.conf.Budget, used), err
}

// admit is asked before every call whether there is anything left to spend.
func (b *budget) admit(key string) error {
	caps, err := b.caps(key)
	if err != nil {
		return err
	}
	return money.Admit(caps, money.Words{Again: "the same command and", Safe: "what was done is kept"}, b.warner.Warn)
}

// enter puts an ended call into the ledger.
func (b *budget) enter(session, cycle int, o roles.Outcome) error {
	return b.ledger.Append(orchestrator.Rows(session, cycle, o))
}

// left is what a call may spend, as its gateway is told.
func (b *budget) left(key string) (gateway.Budget, error) {
	caps, err := b.caps(key)
	return money.Left(b.conf.Limits.Requests, caps), err
}

// tellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (b *budget) tellSpent() {
	caps, err := b.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, c := range caps {
		b.warner.Warn(c.Nearly()...)
	}
}
