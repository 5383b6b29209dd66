package phase

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"abl/internal/testing/lab"
)

// bytesRead runs abl and returns how many bytes it read from files and sockets.
func bytesRead(p *lab.Project, args ...string) (n int64) {
	p.Helper()
	cmd, out := p.Cmd(args...), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		p.Fatal(err)
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", cmd.Process.Pid))
	if err == nil {
		_, err = fmt.Sscanf(string(data), "rchar: %d", &n)
	}
	if err != nil {
		p.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		p.Fatalf("abl %q: got error %v, want none\n%s", args, err, out)
	}
	return n
}

// TestReadsOfALargeSource checks that abl reads little of the source of a phase that has passed.
// To replay the tests it reads the source once. As root it changes the owner of every file
// before.
func TestReadsOfALargeSource(t *testing.T) {
	lab.Long(t)
	lab.Local(t) // for a remote engine abl sends the source to each container of the app
	const files, size = 600, 100_000
	p := newProject(t, "verify: {evidence: required}\n"+nodeApp, builds(write("server.mjs", server)),
		verifies(write("run.sh", honest, "0755")))
	noise := rand.NewChaCha8([32]byte{}) // git cannot compress it
	for i := range files {
		data := make([]byte, size)
		noise.Read(data)
		p.Write(fmt.Sprintf("src/folder%d/file%d", i%20, i), string(data))
	}
	p.Must(0, "phase", "1")
	const other = 70_000_000 // the page, abl-cmd for its containers, and the engine's responses
	for name, c := range map[string]struct {
		most int64
		args []string
	}{
		"passed": {other, []string{"phase", "1"}},
		"again":  {files*size + other, []string{"phase", "1", "--again"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := bytesRead(p, c.args...); got > c.most {
				t.Errorf("bytes that abl read with a source of %d: got %d, want at most %d", files*size, got, c.most)
			}
		})
	}
}
