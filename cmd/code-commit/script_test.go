package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"abl/internal/testing/lab"
	"abl/internal/testing/modelserver"
	"abl/internal/testing/scripttest"
	"abl/roles/model"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"code-commit": main})
}

// canary is the key of all scripts. No file of a run may contain it.
const canary = "AIza-canary-of-the-scripts-7Q"

// The scripts play a user with a project, and a provider with scripted responses.
func TestScripts(t *testing.T) {
	runScripts(t, "testdata/script", func(*testscript.Env) {})
}

// These need an engine.
func TestScriptsOnAnEngine(t *testing.T) {
	lab.Engine(t)
	helper := lab.Bin(t, "abl-cmd")
	runScripts(t, "testdata/engine", func(e *testscript.Env) {
		e.Setenv("DOCKER_HOST", os.Getenv("DOCKER_HOST"))
		e.Setenv("ABL_HELPER", helper)
	})
}

func runScripts(t *testing.T, dir string, setup func(*testscript.Env)) {
	testscript.Run(t, testscript.Params{
		Dir: dir, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			setup(e)
			e.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			e.Setenv("CANARY", canary)
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "portable" {
				return false, fmt.Errorf("no condition %q", name)
			}
			return lab.Portable, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": scripttest.Exits, "serve": serve, "safe": safe, "logged": logged, "unchanged": unchanged,
		},
	})
}

// serve FILE... lets all providers answer each request with the next file, the last one for ever. A
// file is the answer's text, or begins with a line that says what happens instead:
//
//	#status 429        the rest is the body
//	#limited, #declined, and other troubles of modelserver
//	#silence           no response
//	#raw               the rest is the body
//
// Requests are kept as requests/N, with the path and the headers of the key first, their prompts as
// requests/N.prompt and their bodies as requests/N.body.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve FILE...")
	}
	var play []string
	for _, name := range args {
		play = append(play, ts.ReadFile(name))
	}
	dir := ts.MkAbs("requests")
	ts.Check(errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)))
	p := &provider{play: play, dir: dir, over: make(chan struct{})}
	s := httptest.NewServer(p)
	ts.Defer(func() { close(p.over); s.Close() })
	for _, of := range model.Providers() {
		ts.Setenv(of.BaseVar, s.URL)
	}
}

type provider struct {
	play []string
	dir  string
	over chan struct{}
	lock sync.Mutex
	n    int
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p.lock.Lock()
	text := p.play[min(p.n, len(p.play)-1)]
	p.n++
	request := fmt.Sprintf("%s %s\n", r.Method, r.URL.Path)
	for _, name := range []string{"X-Goog-Api-Key", "X-Api-Key", "Authorization"} {
		request += name + ": " + r.Header.Get(name) + "\n"
	}
	request += fmt.Sprintf("\n%s\n\n%s", asked(body), body)
	path := filepath.Join(p.dir, strconv.Itoa(p.n))
	err = errors.Join(os.WriteFile(path, []byte(request), 0o600), os.WriteFile(path+".prompt", []byte(asked(body)), 0o600), os.WriteFile(path+".body", body, 0o600))
	p.lock.Unlock()
	if err != nil {
		panic(err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	word, rest, _ := strings.Cut(text, "\n")
	switch {
	case strings.HasPrefix(word, "#status "):
		code, _ := strconv.Atoi(strings.TrimPrefix(word, "#status "))
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(code)
		io.WriteString(w, rest)
	case word == "#silence":
		<-p.over
	case word == "#raw":
		io.WriteString(w, rest)
	case strings.HasPrefix(word, "#"):
		modelserver.Trouble(word[1:]).ServeHTTP(w, r)
	default:
		script := func(string) (modelserver.Script, error) {
			return modelserver.Script{Final: text, Usage: modelserver.Usage{Prompt: 100, Candidates: 20}}, nil
		}
		(&modelserver.Server{Source: script, Aside: script, Log: io.Discard}).ServeHTTP(w, r)
	}
}

// asked returns the prompt in a request of each API.
func asked(body []byte) string {
	type part struct{ Text string }
	var doc struct {
		Contents []struct{ Parts []part }
		Messages []struct{ Content json.RawMessage }
		Input    string
	}
	if json.Unmarshal(body, &doc) != nil {
		return ""
	}
	var b strings.Builder
	for _, c := range doc.Contents {
		for _, p := range c.Parts {
			b.WriteString(p.Text)
		}
	}
	for _, m := range doc.Messages {
		text, parts := "", []part{}
		_ = errors.Join(json.Unmarshal(m.Content, &text), json.Unmarshal(m.Content, &parts)) // one of the two fits
		for _, p := range append(parts, part{text}) {
			b.WriteString(p.Text)
		}
	}
	return b.String() + doc.Input
}

// safe checks that the key is only in the files of the script, and in no output, also as JSON or in an
// address.
func safe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: safe")
	}
	for _, name := range []string{"stdout", "stderr"} {
		if strings.Contains(ts.ReadFile(name), canary) {
			ts.Fatalf("%s holds the key", name)
		}
	}
	ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		given := strings.HasSuffix(path, "-key.txt") || strings.HasSuffix(path, ".env") || strings.HasSuffix(path, ".given") || filepath.Base(filepath.Dir(path)) == "requests"
		data, err := os.ReadFile(path)
		if err == nil && !given && strings.Contains(string(data), canary) {
			err = fmt.Errorf("%s holds the key", path)
		}
		return err
	}))
}

// logged NAME... checks the files in the only log folder and moves it away.
func logged(ts *testscript.TestScript, neg bool, args []string) {
	folders, err := filepath.Glob(ts.MkAbs("logs/2*"))
	ts.Check(err)
	if len(folders) != 1 {
		ts.Fatalf("there are %d log folders", len(folders))
	}
	entries, err := os.ReadDir(folders[0])
	ts.Check(err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(args) > 0 && strings.Join(got, " ") != strings.Join(args, " ") {
		ts.Fatalf("the log folder holds %q", got)
	}
	at := ts.MkAbs("log")
	ts.Check(errors.Join(os.RemoveAll(at), os.Rename(folders[0], at)))
	ts.Setenv("LOGNAME_WAS", filepath.Base(folders[0]))
}

// unchanged checks that git reports no change.
func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	cmd := exec.Command("git", "status", "--porcelain")
	cmd.Dir = ts.MkAbs(".")
	out, err := cmd.Output()
	ts.Check(err)
	changed := false
	for l := range strings.Lines(string(out)) {
		changed = changed || l[1] != ' ' // the script has staged the files at its beginning
	}
	if changed != neg {
		ts.Fatalf("git status: %s", out)
	}
}
