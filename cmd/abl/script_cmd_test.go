package main

import (
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/modelserver"
	"abl/internal/testing/recordtest"
	"abl/roles"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// hold FILE holds a lock until the end of the script, like another abl.
func hold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: hold FILE")
	}
	path := ts.MkAbs(args[0])
	unlock, err := hostfs.Lock(path)
	ts.Check(err)
	held.Store(path, sync.OnceValue(unlock))
	ts.Defer(func() { unhold(ts, false, args) })
}

// held has the locks of all scripts, by path.
var held sync.Map

// unhold FILE ends hold FILE.
func unhold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: unhold FILE")
	}
	unlock, _ := held.Load(ts.MkAbs(args[0]))
	ts.Check(unlock.(func() error)())
}

// rest PHASE STATUS sets the status of a phase of the project in the current directory, with its
// current spec.
func rest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rest PHASE STATUS")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	p := state.NewProject(ts.MkAbs("."), "src", ".abl/tests")
	f, err := state.Load(p.State())
	if errors.Is(err, os.ErrNotExist) {
		f, err = state.New(p.Root), nil
	}
	ts.Check(err)
	specs, _ := spec.LoadDir(p.Specs())
	this, _ := specs.Phase(n)
	ph := &state.Phase{Status: state.Status(args[1]), Round: 1, Iteration: 5, Step: 5, Attempt: 1, Call: roles.Key(n, roles.Builder, 5, 1), HeldTo: state.HeldTo{SpecSHA: this.SHA256, SpecSize: len(this.Text)}}
	if ph.Status == state.Stuck {
		ph.LastVerdict = "fail"
		ph.Failed = []failedspecs.Entry{{Spec: "GET / → 200", Input: "GET /", Observed: "500"}}
	}
	f.Phases[args[0]] = ph
	ts.Check(state.Save(p.State(), f))
}

// judged PHASE RESULT... keeps the audit record of an iteration on the specs as
// they are now, with a result for each of their contracts (see recordtest.RecordOn) and, at
// the end, further failures.
func judged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: judged PHASE RESULT... [/ FAILED-SPEC...]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	results, further, _ := strings.Cut(strings.Join(args[1:], " "), " / ")
	p := state.NewProject(ts.MkAbs("."), "src", ".abl/tests")
	specs, _ := spec.LoadDir(p.Specs())
	r := recordtest.RecordOn(specs, n, results)
	if further != "" {
		r.Entries = []failedspecs.Entry{{Spec: further}}
	}
	ts.Check(audit.Save(p, r))
}

// number FIELD VALUE writes whole.json as state.json, with a number in phase 1.
func number(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: number FIELD VALUE")
	}
	field := regexp.MustCompile(`"` + args[0] + `": \d+`)
	text := field.ReplaceAllString(ts.ReadFile("whole.json"), `"`+args[0]+`": `+args[1])
	ts.Check(os.WriteFile(ts.MkAbs(".abl/state.json"), []byte(text), 0o644))
}

// torn FILE removes the end of the last line, like a crash during a write.
func torn(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: torn FILE")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	ts.Check(os.Truncate(path, int64(len(data)-1)))
}

// dotenv LINE... writes these lines to .env.
func dotenv(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: dotenv LINE...")
	}
	ts.Check(os.WriteFile(ts.MkAbs(".env"), []byte(strings.Join(args, "\n")+"\n"), 0o600))
}

// hang starts an engine that accepts every request and does not respond.
func hang(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: hang")
	}
	at := ts.MkAbs("hangs.sock")
	l, err := net.Listen("unix", at)
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("DOCKER_HOST", "unix://"+at)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if n, _ := c.Read(make([]byte, 1)); n > 0 {
				_ = os.WriteFile(at+".asked", nil, 0o600)
			}
		}
	}()
}

// appears FILE waits until a file exists.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: appears FILE")
	}
	for {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// aPerson is the id of a user other than root.
const aPerson = 4711

// give DIR changes the owner of a directory to another user, if the test runs as root.
func give(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: give DIR")
	}
	if os.Geteuid() == 0 {
		ts.Check(os.Chown(ts.MkAbs(args[0]), aPerson, aPerson))
	}
}

// owned DIR checks that all files in a directory have its owner.
func owned(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: owned DIR")
	}
	want := uint32(os.Geteuid())
	if want == 0 {
		want = aPerson
	}
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(path string, d os.DirEntry, err error) error {
		var st unix.Stat_t
		if err := errors.Join(err, unix.Lstat(path, &st)); err != nil {
			return err
		}
		if st.Uid != want {
			ts.Fatalf("%s belongs to %d, not to %d", path, st.Uid, want)
		}
		return nil
	}))
}

// answersWith FILE starts a provider that responds to each request with that file, and puts its key
// into .env.
func answersWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: answers FILE")
	}
	text := ts.ReadFile(args[0])
	script := func(string) (modelserver.Script, error) { return modelserver.Script{Final: text}, nil }
	s := httptest.NewServer(&modelserver.Server{Source: script, Log: io.Discard})
	ts.Defer(s.Close)
	ts.Check(os.WriteFile(ts.MkAbs(".env"), []byte("GEMINI_API_KEY=AIza-key-of-the-draft-7\n"), 0o600))
	ts.Setenv("GOOGLE_GEMINI_BASE_URL", s.URL)
}
