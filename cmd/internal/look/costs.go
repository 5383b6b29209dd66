package look

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/ledger"
)

// costsOptions are the flags of abl costs.
type costsOptions struct {
	by  string
	csv bool
}

// CostsCommand returns `abl costs`.
func CostsCommand() cli.Command {
	var o costsOptions
	groupings := make([]string, 0, len(ledger.Ways()))
	for _, w := range ledger.Ways() {
		groupings = append(groupings, string(w))
	}
	return cli.Command{
		Name:  "costs",
		Group: cli.Inspecting,
		Usage: "add up the tokens and dollars of every call",
		Long: `Adds up .abl/logs/tokens.csv, in tokens and at list prices (docs/costs.md). A question
mark means that a call did not report the number, or has no price. A missing number is
never counted as zero.`,
		Examples: "abl costs\nabl costs --by model\nabl costs --json\nabl costs --csv > costs.csv",
		Flags: []cli.Flag{
			{
				Name:   "by",
				To:     &o.by,
				Value:  "WHAT",
				Values: groupings,
				Usage:  "group by one of these (default: tables by phase, role and model)",
			},
			cli.JSONFlag(),
			{Name: "csv", To: &o.csv, Usage: "print the rows as CSV"},
		},
		Run: project.Looking(project.Restored(o.run)),
	}
}

func (o *costsOptions) run(_ context.Context, s *project.Project) error {
	in := s.In
	if o.csv && in.Bool("json") {
		return cli.Usagef("--json and --csv are mutually exclusive")
	}
	if o.csv && o.by != "" {
		return cli.Usagef("cannot combine --csv with --by: --csv prints single rows")
	}
	if o.csv {
		return exportCSV(s)
	}
	list, err := s.Prices()
	if err != nil {
		return err
	}
	totals := s.Totals()
	if err := scanLedger(s, "is not counted", totals.Add); err != nil {
		return err
	}
	a := account{Account: totals.Account()}
	a.Prices.Date, a.Prices.Days = list.Date.Format(time.DateOnly), list.Age(time.Now())
	if in.Bool("json") {
		return in.JSON(a)
	}
	if a.All.Rows == 0 {
		return in.Print(in.Lines("no call has been counted yet"))
	}
	by := []ledger.By{ledger.ByPhase, ledger.ByRole, ledger.ByModel}
	if o.by != "" {
		by = []ledger.By{ledger.By(o.by)}
	}
	text := ""
	for _, b := range by {
		// tool, thoughts, candidates, from cache, cached
		t := view.Table{Rows: a.Rows(b), Right: true, Drop: []int{6, 5, 4, 8, 3}}
		for _, name := range t.Rows[0] {
			t.Header = append(t.Header, strings.ToUpper(name))
		}
		t.Rows = t.Rows[1:]
		text += in.Table(t) + "\n"
	}
	if n := a.All.Unknown; n > 0 {
		text += in.Lines(fmt.Sprintf("%d of %d rows have no count", n, a.All.Rows))
	}
	if n := a.All.Cost.Missing; n > 0 {
		text += in.Lines(fmt.Sprintf("%d of %d rows have no price or an incomplete count: "+
			"docs/costs.md explains how to set prices", n, a.All.Rows))
	}
	return in.Print(text + in.Lines(fmt.Sprintf("list prices of %s, %d days old", a.Prices.Date, a.Prices.Days)))
}

// account is what `abl costs --json` prints.
type account struct {
	ledger.Account
	Prices struct {
		Date string `json:"date"`
		Days int    `json:"days"` // since Date
	} `json:"prices"`
}

// scanLedger calls each for the rows of the ledger. It warns of invalid lines; effect is what the command
// does with them.
func scanLedger(s *project.Project, effect string, each func(ledger.Row)) error {
	return ledger.Open(s.Paths.Ledger()).Scan(each, func(line int, reason string) {
		s.In.Warn(fmt.Sprintf("tokens.csv line %d %s: %s", line, effect, reason))
	})
}

// exportCSV prints the rows of the ledger, redacted.
func exportCSV(s *project.Project) error {
	var rows []ledger.Row
	err := scanLedger(s, "is left out", func(r ledger.Row) { rows = append(rows, r.Map(s.In.Safe.Redact)) })
	return errors.Join(err, ledger.Write(s.In.Result, rows))
}
