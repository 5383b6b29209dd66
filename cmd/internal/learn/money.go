package learn

import (
	"errors"
	"fmt"

	"abl/internal/config"
	"abl/internal/safefile"
	"abl/orchestrator/gateway"
	"abl/orchestrator/ledger"
	"abl/orchestrator/pricelist"
	"abl/orchestrator/prices"
)

// priceList is what models cost here: the project's own prices before abl's.
func priceList(w *work) (pricelist.List, error) {
	list, err := pricelist.Default()
	if err != nil {
		return list, fmt.Errorf("internal error: %w", err)
	}
	if file := w.conf.Prices.File; file != "" {
		const most = 1 << 20
		data, err := safefile.Read(w.root, file, most)
		if errors.Is(err, safefile.ErrAbsent) {
			return list, w.conf.Wrong("prices", "make it, or take the setting away", fmt.Errorf("there is no file %q", file))
		}
		if err != nil {
			return list, err
		}
		own, err := pricelist.Parse(file, data)
		return list.With(own), err
	}
	for _, name := range w.conf.Prices.Models() {
		own, err := pricelist.Own(name, w.conf.Prices.Own[name])
		if err != nil {
			return list, w.conf.Wrong("prices."+name, "in US dollars for a million tokens: {input: 1.25, cached: 0.125, output: 10}", err)
		}
		list = list.With(own)
	}
	return list, nil
}

// used is what calls came to, as far as the ledger tells.
type used struct {
	tokens   int64
	usd      prices.USD
	calls    map[string]bool
	untold   bool // some row does not tell its tokens: the sum is a lower bound
	unpriced bool // likewise in money
}

// used adds up the rows of a session, or all of them with "".
func (b *bench) used(session string) (u used, err error) { return spentIn(b.ledger, session) }

func spentIn(l *ledger.Ledger, session string) (u used, err error) {
	u.calls = map[string]bool{}
	err = l.Scan(func(r ledger.Row) {
		if session != "" && r.Phase != session {
			return
		}
		u.calls[r.CallID] = true
		if n, told := r.Tokens(); told {
			u.tokens += n
		} else {
			u.untold = true
		}
		if usd, known := r.Cost(); known {
			u.usd = u.usd.Plus(usd)
		} else {
			u.unpriced = true
		}
	}, func(int, string) { u.untold, u.unpriced = true, true })
	return u, err
}

// left is what a call may spend, as its gateway is told. A session counts as a
// phase, a project as one.
func (b *bench) left(string) (gateway.Budget, error) {
	requests := b.conf.Limits.Requests
	left := gateway.Budget{Requests: &requests}
	session, err := b.used(fmt.Sprint(b.session))
	if err != nil {
		return left, err
	}
	project, err := b.used("")
	if err != nil {
		return left, err
	}
	for _, l := range []struct {
		of   string
		cap  config.Cap
		used used
	}{{"call", b.conf.Budget.Call, used{}}, {"phase", b.conf.Budget.Phase, session}, {"project", b.conf.Budget.Project, project}} {
		bound := gateway.Bound{Of: l.of, UsedTokens: l.used.tokens, UsedUSD: l.used.usd}
		if n := l.cap.Tokens; n > 0 {
			bound.Tokens = &n
		}
		if usd := prices.Dollars(l.cap.USD); usd > 0 {
			bound.USD = &usd
		}
		if bound.Tokens != nil || bound.USD != nil {
			left.Bounds = append(left.Bounds, bound)
		}
	}
	return left, nil
}

// nearly says that a budget is nearly spent.
func (b *bench) nearly(texts ...string) {
	for _, text := range texts {
		b.say(text)
	}
}
