package main

import (
	"context"
	"encoding/json"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/orchestrator/ledger"
)

func costsCommand() cli.Command {
	ways := make([]string, 0, len(ledger.Ways()))
	for _, w := range ledger.Ways() {
		ways = append(ways, string(w))
	}
	return cli.Command{
		Name: "costs", Group: cli.Looking, Usage: "add up the tokens of every call",
		Long: `Adds up .abl/logs/tokens.csv. A question mark means that some call did not tell
the number; it is never counted as zero. Dollars are not shown: this abl has no
prices.`,
		Examples: "abl costs\nabl costs --by model\nabl costs --json",
		Flags: []cli.Flag{
			{Name: "by", Value: "WHAT", Values: ways, Usage: "group by one of these; all of phase, role and model unless given"},
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
	if in.Bool("csv") {
		return s.exportCSV()
	}
	totals := ledger.NewTotals(ledger.Ways()...)
	if err := s.scanLedger("is not counted", totals.Add); err != nil {
		return err
	}
	if in.Bool("json") {
		return json.NewEncoder(in.Stdout).Encode(totals)
	}
	if totals.All.Rows == 0 {
		_, err := fmt.Fprintln(in.Stdout, "no call has been counted yet")
		return err
	}
	by := []ledger.By{ledger.ByPhase, ledger.ByRole, ledger.ByModel}
	if in.Set("by") {
		by = []ledger.By{ledger.By(in.String("by"))}
	}
	for i, b := range by {
		if i > 0 {
			fmt.Fprintln(in.Stdout)
		}
		fmt.Fprint(in.Stdout, ledger.Table(b, totals.Groups(b), totals.All))
	}
	return nil
}

// scanLedger reads the ledger and warns of every line that is not understood;
// what says what becomes of it.
func (s *session) scanLedger(what string, each func(ledger.Row)) error {
	return ledger.Open(s.project.Ledger()).Scan(each, func(line int, reason string) {
		fmt.Fprintf(s.in.Stderr, "abl: warning: tokens.csv line %d %s: %s\n", line, what, reason)
	})
}

func (s *session) exportCSV() error {
	var rows []ledger.Row
	if err := s.scanLedger("is left out", func(r ledger.Row) { rows = append(rows, r) }); err != nil {
		return err
	}
	return ledger.Export(s.in.Stdout, rows)
}
