package phase

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
)

// loopbackModel serves the project's scenario at 127.0.0.1, with or without TLS, and counts the
// requests with the key. Its certificate is in .abl/ca.pem.
func loopbackModel(t *testing.T, p *lab.Project, file, key string, start func(*httptest.Server)) *atomic.Int64 {
	t.Helper()
	lab.Local(t)
	model, err := modelserver.Open(filepath.Join(p.Dir, file), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Goog-Api-Key") != key {
			t.Errorf("key of the request for %s: got %q, want the project's", r.URL.Path,
				r.Header.Get("X-Goog-Api-Key"))
		}
		asked.Add(1)
		model.ServeHTTP(w, r)
	}))
	start(s)
	t.Cleanup(s.Close)
	if _, at, _ := strings.Cut(s.URL, "://"); !strings.HasPrefix(at, "127.0.0.1:") {
		t.Fatalf("address of the model: got %s, want 127.0.0.1", s.URL)
	}
	if cert := s.Certificate(); cert != nil {
		p.Write(".abl/ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	}
	p.Env = append(p.Env, "GEMINI_API_KEY="+key, "GOOGLE_GEMINI_BASE_URL="+s.URL)
	return &asked
}

// killAt runs abl and kills it once a file exists.
func killAt(p *lab.Project, file string, args ...string) {
	p.Helper()
	run := p.Cmd(args...)
	if err := run.Start(); err != nil {
		p.Fatal(err)
	}
	until(p, file)
	if err := run.Process.Kill(); err != nil {
		p.Fatal(err)
	}
	_ = run.Wait()
}

// until waits until the project has a file.
func until(p *lab.Project, file string) {
	p.Helper()
	for end := time.Now().Add(5 * time.Minute); !p.Exists(file); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%s: got no file in 5 minutes, want one", file)
		}
	}
}
