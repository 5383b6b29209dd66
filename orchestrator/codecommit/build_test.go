package codecommit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"abl/internal/redact"
	testlab "abl/internal/testing/lab"
	"abl/orchestrator/codecommit"
)

// script creates a project with a build.sh.
func script(t *testing.T, mode os.FileMode, text string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, codecommit.Script), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return root
}

const bang = "#!/bin/sh\n"

func TestHost(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "key-of-the-test-1234")
	t.Setenv("OTHER", "key-of-the-test-1234")
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		green      bool
		want       string
	}{
		{"green", bang + "echo out; echo err >&2", 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\nout\n\nSTDERR:\nerr\n"},
		{"red", bang + "echo no; exit 3", 0o755, false, "EXIT CODE: 3\n\nSTDOUT:\nno\n\nSTDERR:\n"},
		{"no first line", "echo out", 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\nout\n\nSTDERR:\n"},
		{"signal", bang + "kill -9 $$", 0o755, false, "EXIT CODE: 137\nIt was ended by the signal killed.\n\nSTDOUT:\n\nSTDERR:\n"},
		{"not executable", bang, 0o644, false, "EXIT CODE: 126\nbuild.sh cannot be run: it must be a file in the project's folder, and executable (chmod +x build.sh)\n\nSTDOUT:\n\nSTDERR:\n"},
		{"no interpreter", "#!/no/such/shell\n", 0o755, false, "EXIT CODE: 127\n\nSTDOUT:\n\nSTDERR:\n(words of the shell)\n"},
		{"nothing to read", bang + "cat; echo end", 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\nend\n\nSTDERR:\n"},
		{"no key", bang + "env | grep -c key-of-the-test; true", 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\n0\n\nSTDERR:\n"},
		{"in its folder", bang + "ls", 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\nbuild.sh\n\nSTDERR:\n"},
		{"odd bytes", bang + `printf 'a\377\000b'`, 0o755, true, "EXIT CODE: 0\n\nSTDOUT:\na\ufffdb\n\nSTDERR:\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := codecommit.Host{Root: script(t, c.mode, c.text)}.Build(t.Context())
			b.Stderr = regexp.MustCompile("(?m)^/bin/sh: .*$").ReplaceAllString(b.Stderr, "(words of the shell)")
			if err != nil || (b.Why() == "") != c.green || b.Text() != c.want {
				t.Errorf("red %q, %v, got\n%swant\n%s", b.Why(), err, b.Text(), c.want)
			}
		})
	}
	b, err := codecommit.Host{Root: t.TempDir()}.Build(t.Context())
	if err != nil || !strings.HasPrefix(b.Why(), "build.sh cannot be run") {
		t.Errorf("build without a script: got %+v, %v, want a reason that names build.sh", b, err)
	}
}

func TestFloodIsCapped(t *testing.T) {
	var stream bytes.Buffer
	root := script(t, 0o755, testlab.File(t, "builds/flood.sh"))
	b, err := codecommit.Host{Root: root, Stream: &stream}.Build(t.Context())
	if err != nil || len(b.Stdout) > 3*half || !strings.HasPrefix(b.Stdout, "first\n") || !strings.HasSuffix(b.Stdout, "xlast\n") {
		t.Errorf("output: got %d bytes, %v, want at most %d bytes, from first to xlast", len(b.Stdout), err, 3*half)
	}
	if want := "[2737867 bytes of output are left out here]"; !strings.Contains(b.Stdout, want) || stream.Len() != 3000011 {
		t.Errorf("streamed output: got %d bytes, %q in it: %t, want 3000011, true",
			stream.Len(), want, strings.Contains(b.Stdout, want))
	}
}

// half is the number of bytes to keep of each end of an output.
const half = 128 << 10

func TestOutput(t *testing.T) {
	for _, size := range []int{0, 1, half, half + 1, 2 * half, 2*half + 1, 3*half + 1, 5*half + 17} {
		var all bytes.Buffer
		o := codecommit.NewOutput(nil, nil)
		for i := 0; all.Len() < size; i++ {
			chunk := bytes.Repeat([]byte{byte('a' + i%26)}, min(1000+i, size-all.Len()))
			all.Write(chunk)
			o.Write(chunk)
		}
		want := all.String()
		if size > 2*half {
			want = want[:half] + fmt.Sprintf("\n[%d bytes of output are left out here]\n", size-2*half) + want[size-half:]
		}
		if got := o.Text(); got != want {
			t.Errorf("%d: got %d bytes, want %d", size, len(got), len(want))
		}
	}
}

// Processes that a build leaves running end with it, and a build that hangs is stopped.
func TestNothingStaysBehind(t *testing.T) {
	root := script(t, 0o755, testlab.File(t, "builds/leaves-a-process.sh"))
	if b, err := (codecommit.Host{Root: root}).Build(t.Context()); err != nil || b.Why() != "" {
		t.Fatalf("build that leaves a process running: got %+v, %v, want it green", b, err)
	}
	gone(t, root)

	hang := testlab.File(t, "builds/hangs.sh")
	root = script(t, 0o755, hang)
	b, err := codecommit.Host{Root: root, Limit: 200 * time.Millisecond}.Build(t.Context())
	if err != nil || b.Why() == "" || b.Note != "build.sh was stopped after 200ms" {
		t.Errorf("build that hangs: got %+v, %v, want it stopped after 200ms", b, err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	root = script(t, 0o755, strings.Replace(hang, "trap '' TERM\n", "", 1))
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(filepath.Join(root, "started")); err == nil {
				cancel(os.ErrClosed)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := (codecommit.Host{Root: root}).Build(ctx); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error of an interrupted build: got %v, want %v", err, os.ErrClosed)
	}
	gone(t, root)
}

// gone waits for the end of the process whose number is in the file pid.
func gone(t *testing.T, root string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	for {
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(data)) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("process %s: got it running, want it gone", bytes.TrimSpace(data))
		case <-time.After(time.Millisecond):
		}
	}
}

// A secret at the place where the output is cut, or in two pieces with other output between them, is
// removed like any other.
func TestNoPartOfASecretIsKept(t *testing.T) {
	const secret = "key-of-the-test-1234567890-ZZ"
	r := redact.New(secret)
	cut := testlab.File(t, "builds/secret-at-the-cut.sh")
	for before := half - len(secret); before <= half; before += 7 {
		text := strings.NewReplacer("SECRET", secret, "BEFORE", fmt.Sprint(before)).Replace(cut)
		root := script(t, 0o755, text)
		b, err := codecommit.Host{Root: root, Secrets: r}.Build(t.Context())
		if err != nil || strings.Contains(b.Stdout, secret[:5]) || strings.Contains(b.Stdout, "67890") {
			t.Errorf("secret after %d bytes: got a part of it in the output, %v, want none", before, err)
		}
	}
	text := strings.NewReplacer("HEAD", secret[:12], "TAIL", secret[12:]).Replace(testlab.File(t, "builds/secret-in-pieces.sh"))
	stream := &gate{root: script(t, 0o755, text)}
	b, err := codecommit.Host{Root: stream.root, Secrets: r, Stream: stream}.Build(t.Context())
	if shown := stream.text.String(); err != nil || b.Stdout != "[secret …ZZ]\n" || strings.Contains(shown, secret[:8]) || strings.Contains(shown, "67890") {
		t.Errorf("got %v, kept %q, shown %q, want no part of the secret", err, b.Stdout, shown)
	}
}

// gate is the output of a build that waits for the file "go" until its word "between" was read.
type gate struct {
	root string
	text bytes.Buffer
}

func (g *gate) Write(b []byte) (int, error) {
	g.text.Write(b)
	if strings.Contains(g.text.String(), "between") {
		if err := os.WriteFile(filepath.Join(g.root, "go"), nil, 0o600); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
