package commit

import (
	"context"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/orchestrator/ledger"
)

func costsCommand(self string) cli.Command {
	return cli.Command{
		Name: "costs", Usage: "add up the tokens of every call",
		Long:  "Adds up tokens.csv in the folder of the logs. A question mark means that some call\ndid not tell the number; it is never counted as zero.",
		Codes: Codes(),
		Flags: []cli.Flag{
			{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "where tokens.csv is"},
			{Name: "by", Value: "WHAT", Default: string(ledger.ByModel), Values: []string{string(ledger.ByModel), string(ledger.ByRole)}, Usage: "group by one of these; a role is a workflow here"},
			{Name: "json", Usage: "print one JSON document (docs/json.md)"},
		},
		Run: opened(self, costs),
	}
}

func costs(_ context.Context, s *session) error {
	in := s.in
	totals := ledger.NewTotals(ledger.Ways()...)
	err := s.ledger().Scan(totals.Add, func(line int, reason string) {
		in.Warn(fmt.Sprintf("tokens.csv line %d is not counted: %s", line, reason))
	})
	if err != nil {
		return err
	}
	if in.Bool("json") {
		return in.JSON(totals)
	}
	if totals.All.Rows == 0 {
		_, err := fmt.Fprintln(in.Stdout, "no call has been counted yet")
		return err
	}
	by := ledger.By(in.String("by"))
	_, err = fmt.Fprint(in.Stdout, ledger.Table(by, totals.Groups(by), totals.All))
	return err
}
