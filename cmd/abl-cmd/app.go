//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"abl/internal/broker"
	"abl/internal/helper"
)

// exitNoRun is the exit code of abl-cmd app if the program has no reliable exit code.
const exitNoRun = 125

var appCommand = helper.Command{
	Name: "app ARGS…",
	Description: "run the program with these arguments, standard input, and the files in $ABL_EXCHANGE (" +
		helper.Exchange + "), which its files then replace",
}

// runApp runs the program in a fresh directory with the files of the exchange folder, and replaces the files
// of that folder by those that the program left.
func (t tool) runApp(ctx context.Context, args []string) int {
	ran, err := t.exchange(ctx, args)
	os.Stdout.Write(ran.Stdout)
	os.Stderr.Write(ran.Stderr)
	for _, text := range ran.Left {
		fmt.Fprintf(os.Stderr, "abl-cmd: %s\n", text)
	}
	if err == nil && ran.Exit == exitNoRun {
		err = fmt.Errorf("the program itself ended with exit code %d", exitNoRun)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "abl-cmd: %v\n", err)
		return exitNoRun
	}
	return ran.Exit
}

// exchange runs the app with the files of the exchange folder as input, and replaces them with the
// files that the run left.
func (t tool) exchange(ctx context.Context, args []string) (ran helper.AppRan, err error) {
	dir, err := filepath.Abs(cmp.Or(os.Getenv("ABL_EXCHANGE"), helper.Exchange))
	if err != nil {
		return ran, err
	}
	if below, err := filepath.Rel(dir, t.Dir); err == nil && filepath.IsLocal(below) {
		return ran, fmt.Errorf("ABL_EXCHANGE is %q, which contains your work: name a separate folder", dir)
	}
	run := helper.AppRun{}
	for _, arg := range args {
		run.Args = append(run.Args, []byte(arg))
	}
	var left []string
	if run.Files, left = broker.Files(dir); len(left) > 0 {
		return ran, fmt.Errorf("cannot pass on the files of %s: %s", dir, strings.Join(left, "; "))
	}
	if t.URL != "" {
		ran, err = t.broker().RunApp(ctx, run, os.Stdin)
	} else {
		ran = t.runAppHere(ctx, run)
	}
	if err == nil && ran.Error != "" {
		err = errors.New(ran.Error)
	}
	if err != nil {
		return ran, err
	}
	return ran, replaceFiles(dir, run.Files, ran.Files)
}

// runAppHere runs the program in this container, with the standard input of abl-cmd.
func (t tool) runAppHere(ctx context.Context, run helper.AppRun) helper.AppRan {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return broker.RunApp(ctx, *t.App, t.Dir, io.Discard, run, func(stdin io.WriteCloser) {
		go func() {
			_, _ = io.Copy(stdin, os.Stdin) // for as long as the program takes it
			stdin.Close()
		}()
	})
}

// replaceFiles replaces the files of a run in the exchange folder with the files that the program left.
func replaceFiles(dir string, was, now map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name := range was {
		if _, stays := now[name]; !stays {
			err = errors.Join(err, root.RemoveAll(name))
		}
	}
	return errors.Join(err, broker.LayFiles(dir, now))
}
