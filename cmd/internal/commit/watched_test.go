package commit_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/commit"
	"abl/internal/testing/modelserver"

	"github.com/creack/pty"
)

// While a model responds, a terminal shows the elapsed time and the received size. The output of
// the command does not contain them.
func TestProgressOnATerminal(t *testing.T) {
	shown := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		modelserver.Unended.ServeHTTP(w, r)
		select {
		case <-shown:
		case <-r.Context().Done():
		}
		io.WriteString(w, `data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}`+"\n\n")
	}))
	defer s.Close()
	t.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL)
	t.Setenv("GEMINI_API_KEY", "key-of-the-test-1234")
	t.Setenv("TERM", "xterm")
	root := t.TempDir()
	files := map[string]string{".gitignore": "/agent-config\n", "agent-config/query.txt": "Is it?\n", "agent-config/codeRollup.txt": "hi\n"}
	write(t, root, files)
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	seen := make(chan string)
	go func() {
		var all strings.Builder
		buf := make([]byte, 4096)
		for open := true; ; {
			n, err := screen.Read(buf)
			all.Write(buf[:n])
			if open && strings.Contains(all.String(), ", about 3 tokens so far") {
				close(shown)
				open = false
			}
			if err != nil {
				seen <- all.String()
				return
			}
		}
	}()
	var out bytes.Buffer
	code := commit.Main(t.Context(), "test", []string{"-C", root, "--cc", "--timeout", "20s", "--retries", "0"}, strings.NewReader(""), &out, tty)
	tty.Close()
	all := <-seen
	if code != 0 || out.String() != "All is done." {
		t.Errorf("got exit %d, %q, want 0 and the answer\n%s", code, &out, all)
	}
	if before, after, _ := strings.Cut(all, "gemini-3.8-flash: 1s, about 3 tokens so far"); after == "" || !strings.HasSuffix(before, "\r\x1b[K") || !strings.Contains(after, "\r\x1b[K") {
		t.Errorf("got %q, want a line of progress that is removed", all)
	}
}

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
