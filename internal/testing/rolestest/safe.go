package rolestest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"abl/internal/redact"
)

const (
	// Key is a secret that records must not contain.
	Key = "sesame-open-4711"
	// Evil has control characters that records must not contain.
	Evil = "\x1b]0;t\a\u009b2J\u202e\r"
)

// Hiding returns a Sanitizer that hides Key.
func Hiding() *redact.Sanitizer {
	o := &redact.Sanitizer{}
	o.Hide(Key)
	return o
}

// Spotless fails the test for every file below dir that contains Key or a control character.
func Spotless(t *testing.T, dir string) {
	t.Helper()
	Must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(Key)) || bytes.ContainsAny(data, "\x1b\a\u009b\u202e\r") {
			t.Errorf("%s: got %q, want no key and no control character", path, data)
		}
		return err
	}))
}
