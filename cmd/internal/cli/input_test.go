package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
)

// No output of a command contains a known secret or a control character, however the command ends.
// Each message is one line.
func TestNothingSecretLeaves(t *testing.T) {
	const fromEnv, learnt, evil = "key-of-the-environment-11", "key-of-a-file-22", "\x1b]0;t\a\u009b\u202e\r"
	t.Setenv("SOME_API_KEY", fromEnv)
	said := "before " + fromEnv + " " + learnt + evil + " after"
	for name, do := range map[string]func(*cli.Input) error{
		"results": func(in *cli.Input) error {
			for part := range strings.SplitSeq(said, "") {
				fmt.Fprint(in.Stdout, part)
			}
			return nil
		},
		"stderr": func(in *cli.Input) error { _, err := fmt.Fprintln(in.Stderr, said); return err },
		"say": func(in *cli.Input) error {
			in.Say("%s\nabl: passed", said)
			in.Warn(said + "\nabl: passed")
			return nil
		},
		"json":    func(in *cli.Input) error { return in.JSON(map[string]string{said: said}) },
		"error":   func(*cli.Input) error { return errors.Join(errors.New(said), errors.New(said)) },
		"hint":    func(*cli.Input) error { return exit.With(exit.Usage, errors.New("x"), said) },
		"misuse":  func(*cli.Input) error { return cli.WithHint(said, "%s", said) },
		"panic":   func(*cli.Input) error { panic(said) },
		"panic 2": func(*cli.Input) error { t.Setenv("ABL_DEBUG", "1"); panic(errors.New(said)) },
	} {
		t.Run(name, func(t *testing.T) {
			app := cli.App{Name: "abl", Commands: []cli.Command{{Name: "do", Run: func(_ context.Context, in *cli.Input) error {
				in.Safe.Hide(learnt)
				return do(in)
			}}}}
			var out, stderr strings.Builder
			cli.Main(t.Context(), app, []string{"do"}, nil, &out, &stderr)
			got := out.String() + stderr.String()
			if strings.Contains(got, fromEnv) || strings.Contains(got, learnt) || strings.ContainsAny(got, "\x1b\a\u009b\u202e\r") {
				t.Errorf("got %q, want no secret and no control character", got)
			}
			if !strings.Contains(got, "before [secret …11] [secret …22]") || !strings.Contains(got, "after") {
				t.Errorf("%s: got %q, want both secrets hidden and the rest unchanged", name, got)
			}
			if strings.Contains(got, "\nabl: passed") {
				t.Errorf("got %q, want no line \"abl: passed\"", got)
			}
			if name == "json" && !json.Valid([]byte(got)) {
				t.Errorf("output: got %q, want JSON", got)
			}
		})
	}
}
