package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// File returns the text of a file below testdata of the package under test. The test fails
// if the file does not exist.
func File(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// SocketDir returns a temporary directory for sockets. The path of t.TempDir() is too long for
// them.
func SocketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "abl-socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
