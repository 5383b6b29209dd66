package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator"
	"abl/orchestrator/event"
	"abl/orchestrator/gateway"
	"abl/orchestrator/prices"
	"abl/orchestrator/state"
	"abl/roles"
)

// budgetFlags let one run spend more than the settings say.
func budgetFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "budget-usd", Value: "AMOUNT", Usage: "+5 raises every dollar cap by 5 for this run, 20 caps the phase at 20"},
		{Name: "budget-tokens", Value: "N", Usage: "the same in tokens: +500000, or 2000000"},
	}
}

// budgetSettings are what the flags set outright.
func budgetSettings(in *cli.Input, set map[string]string) {
	for flag, key := range map[string]string{"budget-usd": "budget.phase.usd", "budget-tokens": "budget.phase.tokens"} {
		if text := in.String(flag); text != "" && !strings.HasPrefix(text, "+") {
			set[key] = text
		}
	}
}

// raiseBudget raises the caps by what the flags add. The same command line means
// the same caps every time, so that running it again after a crash adds nothing.
func raiseBudget(in *cli.Input, conf *config.Config) error {
	for flag, example := range map[string]string{"budget-usd": "5", "budget-tokens": "500000"} {
		text, adds := strings.CutPrefix(in.String(flag), "+")
		if !adds {
			continue
		}
		tokens, usd, err := more(flag, text)
		if err != nil {
			return fault(exit.Usage, fmt.Errorf("--%s: want an amount such as %s or +%s, got %q", flag, example, example, in.String(flag)), "")
		}
		inTokens, inDollars := conf.Budget.Raise(tokens, usd)
		if flag == "budget-usd" && !inDollars || flag == "budget-tokens" && !inTokens {
			return fault(exit.Usage, fmt.Errorf("--%s +%s: no such cap is set, so there is none to raise", flag, text), fmt.Sprintf("--%s %s caps the phase", flag, text))
		}
	}
	return nil
}

func more(flag, text string) (tokens int64, usd float64, err error) {
	if flag == "budget-tokens" {
		n, err := strconv.ParseUint(text, 10, 53)
		return int64(n), 0, err
	}
	amount, err := prices.Parse(text)
	return 0, float64(amount) / float64(prices.Dollar), err
}

// limited is a cap that is set, and what counts towards it.
type limited struct {
	what string // call, phase or project
	cap  config.Cap
	used spending
}

// caps are those of a call, with what is used of them.
func (st *stage) caps(key string) ([]limited, error) {
	used, err := st.spent(st.phase, key)
	if err != nil {
		return nil, err
	}
	b := st.conf.Budget
	var set []limited
	for _, l := range []limited{{"call", b.Call, used.call}, {"phase", b.Phase, used.phase}, {"project", b.Project, used.project}} {
		if l.cap.Tokens > 0 || l.cap.USD > 0 {
			set = append(set, l)
		}
	}
	return set, nil
}

// budget is asked before every call whether there is anything left to spend.
func (st *stage) budget(p *state.Phase) error {
	caps, err := st.caps(callOf(st.phase, p))
	if err != nil {
		return err
	}
	for _, l := range caps {
		if err := l.admits(st.phase); err != nil {
			return err
		}
		st.nearly(l.nearly()...)
		if l.used.unknown > 0 {
			st.nearly(fmt.Sprintf("nobody knows what %d calls of this %s used: its budget sees the rest", l.used.unknown, l.what))
		}
	}
	return nil
}

// callOf is the key of the call that a phase is about to make.
func callOf(n int, p *state.Phase) string {
	role := roles.Builder
	if p.Status == state.Verifying {
		role = roles.Verifier
	}
	return roles.Key(n, role, p.Step, p.Attempt)
}

// admits is nil while a cap leaves something.
func (l limited) admits(n int) error {
	usd := prices.Dollars(l.cap.USD)
	switch {
	case usd > 0 && len(l.used.unpriced) > 0:
		models := l.used.models()
		return unpriced(fmt.Sprintf("tokens of %s are spent, which has no price", strings.Join(models, ", ")), models[0])
	case usd > 0 && l.used.usd >= usd:
		return spentOut(fmt.Sprintf("%s of %s USD of the %s are spent", l.used.usd.Short(), usd, l.what),
			fmt.Sprintf("raise budget.%s.usd in .abl/config.yaml and run the same command again, or go on with abl phase %d --budget-usd +5", l.what, n))
	case l.cap.Tokens > 0 && l.used.tokens >= l.cap.Tokens:
		return spentOut(fmt.Sprintf("%d of %d tokens of the %s are used", l.used.tokens, l.cap.Tokens, l.what),
			fmt.Sprintf("raise budget.%s.tokens in .abl/config.yaml and run the same command again, or go on with abl phase %d --budget-tokens +%d", l.what, n, l.cap.Tokens))
	}
	return nil
}

func spentOut(what, do string) error {
	return &exit.Error{Code: exit.Budget, Err: orchestrator.ErrBudget, Safe: "everything is committed", What: fmt.Sprintf("%v: %s", orchestrator.ErrBudget, what), Do: do}
}

// tellSpent says at the end which caps are nearly spent, or are passed and by how
// much: the last request may go beyond one.
func (st *stage) tellSpent() {
	caps, err := st.caps("")
	if err != nil {
		return // the run has said so, or the next one will
	}
	for _, l := range caps {
		st.nearly(l.nearly()...)
	}
}

// nearly is what a person should know of a cap by now.
func (l limited) nearly() (all []string) {
	usd := prices.Dollars(l.cap.USD)
	for _, text := range []string{
		gateway.Nears(l.what, l.used.tokens, l.cap.Tokens, 0, 0, false),
		gateway.Nears(l.what, 0, 0, l.used.usd, usd, true),
	} {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}

// nearly warns, of each cap once in a run. A gateway's watch calls it too.
func (st *stage) nearly(texts ...string) {
	st.telling.Lock()
	defer st.telling.Unlock()
	for _, text := range texts {
		about := strings.Map(func(c rune) rune {
			if unicode.IsDigit(c) || c == '.' {
				return -1
			}
			return c
		}, text)
		if st.told[about] {
			continue
		}
		if st.told == nil {
			st.told = map[string]bool{}
		}
		st.told[about] = true
		st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Phase: st.phase, Text: text})
	}
}

// left is what a call may spend, as its gateway is told.
func (st *stage) left(key string) (gateway.Budget, error) {
	requests := st.conf.Limits.Requests
	b := gateway.Budget{Requests: &requests}
	caps, err := st.caps(key)
	if err != nil {
		return b, err
	}
	for _, l := range caps {
		bound := gateway.Bound{Of: l.what, UsedTokens: l.used.tokens, UsedUSD: l.used.usd}
		if n := l.cap.Tokens; n > 0 {
			bound.Tokens = &n
		}
		if usd := prices.Dollars(l.cap.USD); usd > 0 {
			bound.USD = &usd
		}
		b.Bounds = append(b.Bounds, bound)
	}
	return b, nil
}
