package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"abl/cmd/internal/cli"
)

func configCommand() cli.Command {
	return cli.Command{
		Name: "config", Group: cli.Looking, Usage: "print every setting and where its value comes from",
		Long:  "Settings are layered: defaults, .abl/config.yaml, .env and the environment (ABL_LOOP_CALL_TIMEOUT=10m), flags.",
		Flags: []cli.Flag{{Name: "json", Usage: "one JSON document"}},
		Run: func(_ context.Context, in *cli.Input) error {
			s, err := open(in)
			if err != nil {
				return err
			}
			lines := s.conf.Lines()
			if in.Bool("json") {
				return json.NewEncoder(in.Stdout).Encode(lines)
			}
			t := tabwriter.NewWriter(in.Stdout, 0, 4, 2, ' ', 0)
			for _, l := range lines {
				fmt.Fprintf(t, "%s\t%s\t%s\n", l.Key, l.Value, l.Source)
			}
			return t.Flush()
		},
	}
}
