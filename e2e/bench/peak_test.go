package bench

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// peak builds the program that measures the memory of another program.
func peak(b *testing.B) string {
	b.Helper()
	bin := filepath.Join(b.TempDir(), "peak")
	if out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-o", bin,
		"./testdata/peak").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return bin
}

// megabytes runs a command under peak and returns its peak memory in MB.
func megabytes(b *testing.B, bin string, cmd *exec.Cmd) float64 {
	b.Helper()
	measured := exec.Command(bin, cmd.Args...)
	measured.Dir, measured.Env = cmd.Dir, cmd.Env
	out, err := measured.Output()
	if err != nil {
		b.Fatalf("%v: %s", err, err.(*exec.ExitError).Stderr)
	}
	kib, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}
