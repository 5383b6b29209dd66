package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"abl/orchestrator/dirs"
)

// layOut writes what the box of a build sees besides the tree, and the two empty
// files that take its output.
func (b *Builds) layOut(rec Record, deadline time.Time) error {
	if err := errors.Join(os.RemoveAll(rec.Dir), os.MkdirAll(rec.In(), 0o755)); err != nil {
		return err
	}
	files := maps.Clone(b.Files)
	if files == nil {
		files = map[string][]byte{}
	}
	var err error
	run := dirs.RunSpec{Argv: b.Argv, Dir: dirs.Src, Stdout: dirs.Out, Stderr: dirs.Err, Deadline: deadline.Unix(), Probe: dirs.Probe}
	if files["run.json"], err = json.Marshal(run); err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	for _, name := range sortedKeys(files) {
		if err := writeReadable(filepath.Join(rec.In(), name), files[name]); err != nil {
			return err
		}
	}
	return (&Runner{Root: b.Root, UID: b.UID, GID: b.GID}).outputs(Job{}, rec)
}

// copyOutput passes on what a build prints while it does; stop passes on the rest.
func copyOutput(rec Record, stdout, stderr io.Writer) (stop func() error, err error) {
	out, err := OpenOutput(rec.Stdout())
	if err != nil {
		return nil, err
	}
	voice, err := OpenOutput(rec.Stderr())
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	take := func() error { // from where the last time ended
		_, oerr := io.Copy(stdout, out)
		_, verr := io.Copy(stderr, voice)
		return errors.Join(oerr, verr)
	}
	done, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		var err error
		for err == nil {
			select {
			case <-done:
				ended <- take()
				return
			case <-tick.C:
				err = take()
			}
		}
		<-done
		ended <- err
	}()
	return func() error {
		close(done)
		return errors.Join(<-ended, out.Close(), voice.Close())
	}, nil
}
