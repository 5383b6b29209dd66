// Command abl turns written specs into verified software. For `abl phase N` a Builder writes the code
// and a Verifier tests the running system, each in a separate container, until every contract holds.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/doctor"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/submit"
	"abl/cmd/internal/trust"
	"abl/cmd/internal/view"
	"abl/internal/config"
	"abl/internal/wording"
	"abl/roles"
)

// The Makefile sets these when it builds abl. built is the commit's time.
var version, revision, built = "dev", "", ""

func main() {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := cli.Main(ctx, app(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func app() cli.App {
	return cli.App{
		Name: "abl", Version: version, Built: built, Usage: "turn written specs into verified software",
		Long: `abl runs phases. You write specs: contracts of the form ACTION → EXPECTED RESULT, one
file per phase. An agent builds what they say. Another agent, which never sees the
code, tests the running system against them.`,
		Flags: []cli.Flag{
			{Name: "project", Short: "C", Value: "DIR", Usage: "use the project in DIR (default: the current directory or one above it)"},
			trust.Flag,
		},
		Topics: topics(), Habits: habits(),
		Commands: []cli.Command{
			initCommand(), guideCommand(), demoCommand(), doctor.Command(),
			phaseCommand(), runCommand(), stopCommand(), submit.Command(), publishCommand(), pullCommand(), openCommand(), shellCommand(), learn.Command(),
			statusCommand(), specCommand(), reportCommand(), verdictCommand(), logsCommand(), costsCommand(), configCommand(),
			commit.Command("code-commit"), checkCommand(),
			imagesCommand(), cleanCommand(), trustCommand(), debugCommand(), versionCommand(), cli.Manual(), cli.Completion("abl"),
		},
	}
}

func versionCommand() cli.Command {
	return cli.Command{
		Name: "version", Group: cli.Upkeep, Usage: "print abl's version",
		Flags: []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}},
		Run: func(_ context.Context, in *cli.Input) error {
			b := build{version, revision, built, runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return in.Show(b, func(w io.Writer) { fmt.Fprintln(w, "abl", version) })
		},
	}
}

// build is what `abl version --json` prints.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Built   string `json:"built,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func configCommand() cli.Command {
	return cli.Command{
		Name: "config", Group: cli.Looking, Args: "[KEY]", Usage: "print the settings, or the value of one",
		Long: `Prints every setting with its value and where the value comes from. With KEY, prints the
value only; with the beginning of a key, such as limits, the settings below it.

The last of these that sets a value wins: defaults, .abl/config.yaml, ABL_* in .env,
ABL_* in the environment (ABL_LOOP_CALL_TIMEOUT=10m), flags. To change a setting edit
.abl/config.yaml; docs/config.md describes each.`,
		Examples: "abl config\nabl config limits\nabl config models.builder",
		Flags:    []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}},
		Run:      phase.Looking(runConfig),
	}
}

func runConfig(_ context.Context, s *phase.Project) error {
	all := s.Conf.Lines()
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if a := s.Address(p); err == nil && a.Key != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if len(s.In.Args) > 0 {
		key, keys := s.In.Args[0], []string{}
		for _, l := range all {
			keys = append(keys, l.Key)
		}
		all = slices.DeleteFunc(all, func(l config.Line) bool { return l.Key != key && !strings.HasPrefix(l.Key, key+".") })
		if len(all) == 0 {
			hint := "abl config lists the settings"
			if near := wording.Near(key, keys); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			return cli.WithHint(hint, "there is no setting %q", key)
		}
		if all[0].Key == key && !s.In.Bool("json") {
			_, err := fmt.Fprintln(s.In.Stdout, all[0].Value)
			return err
		}
	}
	t := view.Table{Header: []string{"KEY", "VALUE", "SOURCE"}, Flex: 1}
	for _, l := range all {
		t.Rows = append(t.Rows, []string{l.Key, l.Value, l.Source})
	}
	return s.In.ShowTable(all, t)
}
