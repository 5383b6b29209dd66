package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles/environment"
)

// cleanOptions are the flags of abl clean.
type cleanOptions struct{ orphans, all bool }

func cleanCommand() cli.Command {
	var o cleanOptions
	return cli.Command{
		Name:  "clean",
		Group: cli.Maintenance,
		Usage: "remove this project's containers, volumes and networks",
		Long: `Removes this project's containers, volumes and networks from the engine: those with its
label and a name that begins with abl- and its id. Also removes those of solutions/ in the
project, and of earlier projects in its directory whose .abl/state.json was deleted (for
example by git clean -ffdx). In a directory without a project, abl learn clean removes
those of solutions/.

It also restores the owner of files that containers used, and undoes the partial changes
of a killed code-commit. It changes no other files: source, tests, specs, logs and the
ledger stay as they are.

--orphans also removes what projects in other directories left, if their state is gone,
none of their containers runs, and all deadlines passed more than a week ago.
--all removes nothing. It lists every abl project on the engine, the oldest first.`,
		Flags: []cli.Flag{
			{Name: "orphans", To: &o.orphans, Usage: "also remove those of projects without .abl/state.json"},
			{Name: "all", To: &o.all, Usage: "list every abl project on the engine with its age, and remove nothing"},
			{Name: "json", Usage: "with --all: one JSON document (docs/json.md)"},
		},
		Run: o.run,
	}
}

// run cleans up after this project, or lists the projects on the engine with --all.
func (o *cleanOptions) run(ctx context.Context, in *cli.Input) error {
	switch {
	case o.all && o.orphans:
		return cli.Usagef("cannot combine --all with --orphans: --all only lists")
	case o.all:
		return listProjects(ctx, in)
	case in.Bool("json"):
		return cli.Usagef("--json needs --all")
	}
	return project.Looking(o.clean)(ctx, in)
}

// listProjects prints what each abl project has on the engine.
func listProjects(ctx context.Context, in *cli.Input) error {
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	all, err := environment.Projects(ctx, eng)
	if err != nil {
		return exit.OnEngine(err)
	}
	now := time.Now()
	if len(all) == 0 && !in.Bool("json") {
		return in.Print(in.Lines("no abl project has anything on the engine"))
	}
	t := view.Table{Header: strings.Fields("PROJECT AGE CONTAINERS RUNNING VOLUMES NETWORKS DIRECTORY"), Flex: 6}
	for _, p := range all {
		dir := cmp.Or(p.Dir, "unknown")
		if p.Lost {
			dir += " (its .abl/state.json is gone)"
		}
		t.Rows = append(t.Rows, []string{p.ID, age(now.Sub(p.Created)),
			strconv.Itoa(p.Containers), strconv.Itoa(p.Running), strconv.Itoa(p.Volumes), strconv.Itoa(p.Networks), dir})
	}
	return in.ShowTable(all, t)
}

// age formats a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < 0, d > 100*365*24*time.Hour: // the engine reported no time
		return "unknown"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func (o *cleanOptions) clean(ctx context.Context, s *project.Project) error {
	in := s.In
	if _, err := s.State(); err != nil {
		return err
	}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.State()
	if err != nil {
		return err
	}
	if err := commit.CleanFiles(in, s.Paths.Root, filepath.Join(s.Paths.Root, "logs")); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return errors.Join(exit.OnEngine(err), phase.RestoreOwners(s.Folder, f, state.Discard))
	}
	defer eng.Close()
	environment.UseKiller(eng, func(text string) { fmt.Fprintln(in.Stderr, text) })
	if err := s.Abandon(f); err != nil {
		return err
	}
	removed, err := eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
	earlier, eerr := environment.SweepEarlier(ctx, eng, s.Paths.State(), f.Project)
	more, cerr := commit.Sweep(ctx, eng, s.Paths.Root)
	removed, err = slices.Concat(removed, earlier, more), errors.Join(err, eerr, cerr)
	if o.orphans {
		orphans, oerr := environment.SweepOrphans(ctx, eng)
		removed, err = append(removed, orphans...), errors.Join(err, oerr)
	}
	for _, name := range removed {
		fmt.Fprintln(in.Stdout, "removed", name)
	}
	if err != nil { // a container that was not removed may still write to the workspaces
		return exit.OnEngine(err)
	}
	learned, err := learn.Clean(ctx, in, s.Paths.Root, eng)
	if err != nil {
		return exit.OnEngine(err)
	}
	if len(removed)+learned == 0 {
		fmt.Fprintln(in.Stdout, "nothing to remove")
	}
	return errors.Join(s.RedactCurrent(f), phase.RestoreOwners(s.Folder, f, state.Discard))
}
