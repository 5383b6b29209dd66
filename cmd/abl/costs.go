package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/money"
	"abl/cmd/internal/view"
	"abl/orchestrator/ledger"
	"abl/orchestrator/prices"
)

func costsCommand() cli.Command {
	ways := make([]string, 0, len(ledger.Ways()))
	for _, w := range ledger.Ways() {
		ways = append(ways, string(w))
	}
	return cli.Command{
		Name: "costs", Group: cli.Looking, Usage: "add up the tokens and dollars of every call",
		Long: `Adds up .abl/logs/tokens.csv, in tokens and at list prices (docs/costs.md). A
question mark means that some call did not tell the number, or has no price; it is
never counted as zero. Beside the sums: what a passed contract cost, what the
running phase may come to, where the gateway and an agent counted differently, and
on a terminal a picture over time.`,
		Examples: "abl costs\nabl costs --by model\nabl costs --by day --plot\nabl costs --json\nabl costs --csv > costs.csv",
		Flags: []cli.Flag{
			{Name: "by", Value: "WHAT", Values: ways, Usage: "group by one of these; all of phase, role and model unless given"},
			{Name: "plot", Usage: "draw what was spent over time, also where there is no terminal"},
			{Name: "json", Usage: "one JSON document (docs/json.md)"},
			{Name: "csv", Usage: "the rows themselves, one form"},
		},
		Run: runCosts,
	}
}

func runCosts(_ context.Context, in *cli.Input) error {
	s, err := open(in)
	if err != nil {
		return err
	}
	if in.Bool("csv") && in.Bool("json") {
		return cli.Usagef("--json and --csv are two forms: give one of them")
	}
	if in.Bool("csv") {
		return s.exportCSV()
	}
	a, err := s.account()
	if err != nil {
		return err
	}
	if in.Bool("json") {
		return in.JSON(a)
	}
	if a.All.Rows == 0 {
		fmt.Fprintln(in.Stdout, "no call has been counted yet")
		a.sayInCall(in)
		return nil
	}
	by := []ledger.By{ledger.ByPhase, ledger.ByRole, ledger.ByModel}
	if in.Set("by") {
		by = []ledger.By{ledger.By(in.String("by"))}
	}
	for i, b := range by {
		if i > 0 {
			fmt.Fprintln(in.Stdout)
		}
		fmt.Fprint(in.Stdout, ledger.Table(b, a.By[b], a.All))
	}
	a.remarks(in)
	columns := view.Columns(in.Bare.Stdout)
	if in.Bool("plot") && columns == 0 {
		columns = 80
	}
	if columns > 0 {
		fmt.Fprint(in.Stdout, a.time.plot(columns))
	}
	return nil
}

// account is what `abl costs` shows.
type account struct {
	All         ledger.Sum                   `json:"all"`
	By          map[ledger.By][]ledger.Group `json:"by"`
	Prices      priceDate                    `json:"prices"`
	Contract    *perContract                 `json:"contract,omitempty"`
	InCall      *amount                      `json:"in_call,omitempty"`
	Forecast    *forecast                    `json:"forecast,omitempty"`
	Differences *differences                 `json:"differences,omitempty"`

	time timeline
}

// priceDate says how old the prices are.
type priceDate struct {
	Date string `json:"date"`
	Days int    `json:"days"` // since then
}

// account reads the ledger once, as a stream, and what belongs to it.
func (s *session) account() (*account, error) {
	list, err := s.pricing()
	if err != nil {
		return nil, err
	}
	a := &account{Prices: priceDate{list.Date.Format(time.DateOnly), list.Age(time.Now())}}
	totals := ledger.NewTotals(ledger.Ways()...)
	totals.Price = func(r ledger.Row) (prices.USD, bool) { return money.CostOf(list, r) }
	err = s.scanLedger("is not counted", func(r ledger.Row) {
		totals.Add(r)
		usd, _ := totals.Price(r)
		a.time.add(r, usd)
	})
	if err != nil {
		return nil, err
	}
	a.All, a.By = totals.Sum(), map[ledger.By][]ledger.Group{}
	for _, by := range ledger.Ways() {
		a.By[by] = append([]ledger.Group{}, totals.Groups(by)...)
	}
	f, err := s.state()
	if err != nil { // the sums are worth having without it
		s.in.Warn(err)
	} else {
		a.Contract, a.Forecast = s.perContract(f, a.By[ledger.ByPhase]), s.forecast(f, a.By)
		if _, p := underWay(f); p != nil {
			a.InCall = s.inCall(p)
		}
	}
	a.Differences, err = s.differences()
	return a, err
}

// sayInCall says what the call that is on has used, unless the forecast does.
func (a *account) sayInCall(in *cli.Input) {
	if a.InCall != nil && a.Forecast == nil {
		fmt.Fprintf(in.Stdout, "the call that is on has used %s so far, which is in no sum\n", a.InCall.text())
	}
}

// remarks are the sentences below the tables.
func (a *account) remarks(in *cli.Input) {
	w, line := in.Stdout, in.Outlet.Line
	fmt.Fprintln(w)
	if n := a.All.Cost.Missing; n > 0 {
		fmt.Fprintf(w, "%d of %d rows have no price or were not told whole: see docs/costs.md for prices of your own\n", n, a.All.Rows)
	}
	fmt.Fprintf(w, "list prices of %s, %d days old\n", a.Prices.Date, a.Prices.Days)
	if a.Contract != nil {
		fmt.Fprintln(w, a.Contract.text())
	}
	a.sayInCall(in)
	if a.Forecast != nil {
		fmt.Fprintln(w, a.Forecast.text())
	}
	if d := a.Differences; d != nil {
		fmt.Fprintln(w, line(d.text()))
	}
}

// mostWarnings is how many lines of a ledger are complained of one by one.
const mostWarnings = 20

// scanLedger reads the ledger and warns of the lines that are not understood;
// what says what becomes of them.
func (s *session) scanLedger(what string, each func(ledger.Row)) error {
	bad := 0
	err := ledger.Open(s.project.Ledger()).Scan(each, func(line int, reason string) {
		if bad++; bad <= mostWarnings {
			s.in.Warn(fmt.Sprintf("tokens.csv line %d %s: %s", line, what, reason))
		}
	})
	if bad > mostWarnings {
		s.in.Warn(fmt.Sprintf("%d further lines of tokens.csv: each %s; the next phase sets them aside", bad-mostWarnings, what))
	}
	return err
}

// exportCSV passes the rows on one by one, however many there are.
func (s *session) exportCSV() error {
	w := ledger.NewWriter(s.in.Result) // made safe as rows are
	err := w.Header()
	var failed error
	scanned := s.scanLedger("is left out", func(r ledger.Row) {
		if failed == nil {
			failed = w.Write(r.Map(s.in.Outlet.Redact))
		}
	})
	return errors.Join(err, scanned, failed, w.Flush())
}
