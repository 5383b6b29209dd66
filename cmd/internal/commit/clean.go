package commit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/ground"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/codecommit"
)

func cleanCommand(self string) cli.Command {
	return cli.Command{
		Name: "clean", Usage: "remove what a run that was killed has left",
		Long: `Puts files back that were changed by half, removes temporary files, and takes
containers, volumes and networks of this project's builds off the engine, if one
answers. The next run does so too. Logs and the ledger are never touched.`,
		Codes: Codes(),
		Flags: []cli.Flag{{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "where the folders of the logs are"}},
		Run:   opened(self, clean),
	}
}

func clean(ctx context.Context, s *session) error {
	if err := s.cleanFiles(); err != nil {
		return err
	}
	eng, _, err := ground.Connect(ctx)
	if errors.Is(err, sandbox.ErrUnreachable) {
		s.say("no engine answers, so none was asked for what builds in containers have left")
		return nil
	}
	if err != nil {
		return settle(err)
	}
	defer eng.Close()
	removed, err := Sweep(ctx, eng, s.root)
	for _, name := range removed {
		fmt.Fprintln(s.in.Stdout, "removed", name)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(s.in.Stdout, "nothing was left on the engine")
	}
	return settle(err)
}

// CleanFiles removes what a run that was killed has left in a project's files.
func CleanFiles(in *cli.Input, root string) error {
	return (&session{in: in, root: root, logs: "logs"}).cleanFiles()
}

// Sweep removes what runs in a project have left on an engine.
func Sweep(ctx context.Context, eng *docker.Engine, root string) ([]string, error) {
	return eng.Sweep(ctx, map[string]string{sandbox.LabelProject: engineID(root)}, nil)
}

// cleanFiles is for both protocols. Where nobody has worked nothing is made.
func (s *session) cleanFiles() error {
	for _, name := range []string{codecommit.V1, codecommit.V2} {
		one := &session{in: s.in, root: s.root, logs: s.logs}
		var err error
		if one.profile, err = codecommit.ProfileOf(name); err != nil {
			return err
		}
		if !exists(one.lockFile()) {
			continue
		}
		unlock, err := one.lock()
		if err != nil {
			return err
		}
		if err := errors.Join(one.cleanLogs(), unlock()); err != nil {
			return err
		}
	}
	return nil
}

// cleanLogs removes temporary files from the folders of the logs.
func (s *session) cleanLogs() error {
	dir, _ := s.logDir()
	entries, err := fs.ReadDir(os.DirFS(dir), ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, hostfs.SweepTemps(filepath.Join(dir, e.Name())))
		}
	}
	return err
}
