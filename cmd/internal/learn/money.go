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

// budget is what a session may spend, and the ledger in which it stands.
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
	p := &budget{conf: w.conf, project: project.New(w.home.Root, "code", ".abl/none"), session: s.Session}
	p.ledger = money.Book{Ledger: ledger.Open(p.project.Ledger()), List: list, Hide: w.in.Outlet.Redact, Tell: w.tell.Note}
	p.warner.Tell = w.tell.Note
	return p, p.ledger.Ready()
}

// caps are those of a call, with what is used of them. A session counts as a
// phase, a project as one.
func (p *budget) caps(key string) ([]money.Cap, error) {
	used, err := money.Spent(p.project, p.ledger.List, p.session, key)
	return money.Caps(p.conf.Budget, used), err
}

// admit is asked before every call whether there is anything left to spend.
func (p *budget) admit(key string) error {
	caps, err := p.caps(key)
	if err != nil {
		return err
	}
	return money.Admit(caps, money.Words{Again: "the same command and", Safe: "what was done is kept"}, p.warner.Warn)
}

// enter puts an ended call into the ledger.
func (p *budget) enter(session, cycle int, o roles.Outcome) error {
	return p.ledger.Append(orchestrator.Rows(session, cycle, o))
}

// left is what a call may spend, as its gateway is told.
func (p *budget) left(key string) (gateway.Budget, error) {
	caps, err := p.caps(key)
	return money.Left(p.conf.Limits.Requests, caps), err
}

// tellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (p *budget) tellSpent() {
	caps, err := p.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, c := range caps {
		p.warner.Warn(c.Nearly()...)
	}
}
