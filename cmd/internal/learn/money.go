package learn

import (
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/orchestrator/gateway"
	"abl/orchestrator/learner"
	"abl/orchestrator/ledger"
	"abl/orchestrator/project"
)

// purse is what a session may spend, and the book in which it stands.
type purse struct {
	conf    *config.Loaded
	project project.Project
	session int
	book    money.Book
	warner  money.Warner
}

func openPurse(w *work, s learner.State) (*purse, error) {
	list, err := money.Prices(w.root, w.conf)
	if err != nil {
		return nil, err
	}
	p := &purse{conf: w.conf, project: project.New(w.home.Root, "code", ".abl/none"), session: s.Session}
	p.book = money.Book{Ledger: ledger.Open(p.project.Ledger()), List: list, Hide: w.in.Outlet.Redact, Tell: w.tell.Note}
	p.warner.Tell = w.tell.Note
	return p, p.book.Ready()
}

// caps are those of a call, with what is used of them. A session counts as a
// phase, a project as one.
func (p *purse) caps(key string) ([]money.Cap, error) {
	used, err := money.Spent(p.project, p.book.List, p.session, key)
	return money.Caps(p.conf.Budget, used), err
}

// admit is asked before every call whether there is anything left to spend.
func (p *purse) admit(key string) error {
	caps, err := p.caps(key)
	if err != nil {
		return err
	}
	return money.Admit(caps, money.Words{Again: "the same command and", Safe: "what was done is kept"}, p.warner.Warn)
}

// left is what a call may spend, as its gateway is told.
func (p *purse) left(key string) (gateway.Budget, error) {
	caps, err := p.caps(key)
	return money.Left(p.conf.Limits.Requests, caps), err
}

// tellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (p *purse) tellSpent() {
	caps, err := p.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, c := range caps {
		p.warner.Warn(c.Nearly()...)
	}
}
