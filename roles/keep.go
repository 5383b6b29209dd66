package roles

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/redact"
)

// Keep makes safe what the box of an ended call has printed, and what its app
// has: whoever looks at these files later does so without abl.
func (r Record) Keep(o *redact.Sanitizer) error {
	return errors.Join(keepAll(o, r.Dir, "stdout", "stderr"), keepAll(o, filepath.Join(r.Dir, "app"), "app.log", "events"))
}

// keepAll passes by what is not there.
func keepAll(o *redact.Sanitizer, dir string, names ...string) error {
	for _, name := range names {
		if err := ownMode(filepath.Join(dir, name)); err != nil {
			return err
		}
		if err := keepFile(o, dir, name); err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return fmt.Errorf("cannot make the output in %q safe to keep: %w", filepath.Join(dir, name), err)
		}
	}
	return nil
}

// keepFile replaces a file that is not safe, so that a hard link to it keeps what was
// there. The caller holds the lock under which its folder is written.
func keepFile(o *redact.Sanitizer, dir, name string) error {
	if err := hostfs.SweepTemps(dir); err != nil {
		return err
	}
	f, err := hostfs.Open(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return err
	}
	return o.Keep(f, func(fill func(io.Writer) error) error {
		return hostfs.Fill(filepath.Join(dir, name), fi.Mode().Perm(), fill)
	})
}

// keep makes safe what the call printed, gives it to the person, and makes the
// role's last log name it again.
func (r *Runner) keep(j Job, rec Record) error {
	if err := r.trim(rec); err != nil {
		return err
	}
	if err := keepAll(r.Safe, rec.Dir, "stdout", "stderr"); err != nil {
		return err
	}
	if r.Root {
		for _, path := range []string{rec.Stdout(), rec.Stderr()} {
			if err := os.Chown(path, r.Person[0], r.Person[1]); err != nil {
				return fmt.Errorf("cannot take back %q: %w", path, err)
			}
		}
	}
	printed, err := os.Stat(rec.Stdout())
	if err != nil {
		return fmt.Errorf("cannot keep the output of call %s: %w", j.Call.ID, err)
	}
	last, err := os.Stat(r.Project.LastLog(j.Role.Name))
	if err == nil && os.SameFile(printed, last) {
		return nil
	}
	return r.pointLast(j, rec)
}

// trim takes from what the call printed what is beyond the limit, whether it was
// stopped at once or only a while after.
func (r *Runner) trim(rec Record) error {
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		fi, err := os.Lstat(path)
		if err != nil || !fi.Mode().IsRegular() || !r.flooded(fi.Size()) {
			continue // what is not there is told of by others
		}
		if err := errors.Join(ownMode(path), os.Truncate(path, r.Output)); err != nil {
			return fmt.Errorf("cannot shorten the output of a call: %w", err)
		}
	}
	return nil
}

// keep makes safe what an app that is gone has printed.
func (a *App) keep(key string) error { return keepAll(a.Safe, a.dir(key), "app.log", "events") }
