package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
)

// KeepFinding keeps the verdict beside the call that it is about.
func KeepFinding(p state.Project, key string, finding any) error {
	return writeJSON(filepath.Join(p.Call(key), "finding.json"), finding)
}

// KeptFinding reads what KeepFinding kept of the call; false when it was not
// judged yet.
func KeptFinding(p state.Project, key string, finding any) (bool, error) {
	return readJSON(filepath.Join(p.Call(key), "finding.json"), finding)
}

const regressionFile = "regression.json"

// KeepRegression keeps what the tests of earlier phases have shown before the
// call; a repetition takes the place of what was kept.
func KeepRegression(p state.Project, key string, finding any) error {
	if err := os.MkdirAll(p.Call(key), 0o755); err != nil {
		return fmt.Errorf("cannot keep the record of a call: %w", err)
	}
	return writeJSON(filepath.Join(p.Call(key), regressionFile), finding)
}

// KeptRegression reads what KeepRegression kept; false when nothing was replayed.
func KeptRegression(p state.Project, key string, finding any) (bool, error) {
	return readJSON(filepath.Join(p.Call(key), regressionFile), finding)
}

// RemoveTests removes one entry of the Verifier's workspace, whatever it has
// become there.
func RemoveTests(p state.Project, name string) error { return hostfs.Remove(p.Tests, name) }

// WriteTests puts a file of abl's own into the Verifier's workspace, in place
// of what stood under its name. No box that could race it is running.
func WriteTests(p state.Project, name string, data []byte) error {
	if err := RemoveTests(p, name); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(p.Tests, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // and no link is followed
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", name, err)
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// TakeFailedSpecs moves an earlier call's failed_specs.md out of the way and
// into the record of the call about to start, so that a file found afterwards
// is this call's. What is not a readable plain file is removed.
func TakeFailedSpecs(p state.Project, key, name string, max int64, o *redact.Sanitizer) ([]byte, error) {
	kept := filepath.Join(p.Call(key), "before-"+name)
	data, err := hostfs.Read(p.Tests, name, max)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		data, err := os.ReadFile(kept) // taken by an abl that was killed right afterwards
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return data, err
	case err != nil:
		return nil, RemoveTests(p, name)
	}
	data = []byte(o.Whole(string(data)))
	if err := hostfs.Write(kept, data, 0o644); err != nil {
		return nil, err
	}
	failpoint.Here("failed_specs.kept")
	return data, RemoveTests(p, name)
}
