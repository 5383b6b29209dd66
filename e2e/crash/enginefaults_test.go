package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/internal/testing/play"
)

// version is the beginning of every path of the engine's API but that of the first.
var version = regexp.MustCompile(`^/v1\.\d+/`)

// behind is a plant whose phase is played by the real adapter of the engine's API,
// behind a proxy.
type behind struct {
	*plant
	daemon *daemon
	proxy  *lab.Proxy
	notes  atomic.Int64 // how often the engine was told to be away, or back
}

func newBehind(t *testing.T) *behind {
	t.Helper()
	p := newPlant(t)
	d := newDaemon(t, p.engine)
	return &behind{plant: p, daemon: d, proxy: lab.NewProxyTo(t, d.socket)}
}

// run plays the phase as a new abl would.
func (b *behind) run() error {
	b.Helper()
	e, err := docker.Connect(b.Context(), func(name string) string {
		return map[string]string{"DOCKER_HOST": b.proxy.Host}[name]
	})
	if err != nil {
		return err
	}
	defer e.Close()
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	e.Patient(ctx, time.Minute, func(time.Duration, bool) { b.notes.Add(1) })
	r, err := play.Phase{Root: b.Dir, Engine: e}.Play(ctx)
	if err == nil && r.Status != state.Passed {
		err = fmt.Errorf("it came to rest as %s: %v", r.Status, r.Why)
	}
	return err
}

// settles wants the end of an undisturbed phase, and nothing left.
func (b *behind) settles(want string) {
	b.Helper()
	same(b.TB.(*testing.T), want, b.print())
	if left := b.daemon.left(); len(left) > 0 {
		b.Errorf("left on the engine: %v", left)
	}
}

// recorded are the kinds of requests of a phase that nothing befell.
var recorded struct {
	sync.Once
	kinds []string
}

func kindsOfRequests(t *testing.T) []string {
	t.Helper()
	recorded.Do(func() {
		t.Run("recorded", func(t *testing.T) {
			b := newBehind(t)
			if err := b.run(); err != nil {
				t.Fatal(err)
			}
			for _, kind := range b.proxy.Kinds() {
				if kind != "HEAD /_ping" { // before anything is begun: TestNoEngine
					recorded.kinds = append(recorded.kinds, kind)
				}
			}
		})
	})
	return recorded.kinds
}

var faultNames = map[lab.Fault]string{
	lab.Lost: "is done and its answer lost", lab.Severed: "is cut off", lab.Refused: "is refused",
	lab.Halved: "is done and its answer cut in half", lab.Late: "is done when nobody waits any longer",
}

// Whatever becomes of a request to the engine (its answer is lost after the engine
// did it, or arrives in half; it never arrives, or comes late, or nobody listens for a
// while) the phase comes to the same end as an undisturbed one; nothing is done twice and
// nothing is left. A request that changes something is tried for every box by itself.
func TestEngineFaults(t *testing.T) {
	want, _, _ := expected(t)
	for i, kind := range kindsOfRequests(t) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		for fault, name := range faultNames {
			changes := strings.HasPrefix(kind, "P") && !strings.HasSuffix(kind, "/wait") || kind == "DELETE /containers/build"
			first := kind == "GET /containers/build/logs" && fault == lab.Late // which costs a call unless it is asked again
			if os.Getenv("ABL_SOAK") == "" && !first && (fault == lab.Late || (i+int(fault))%12 != 0 && !(changes && fault == lab.Lost)) {
				continue // a late one takes as long as abl waits for an answer
			}
			if fault == lab.Late && strings.HasSuffix(kind, "/archive") {
				continue // for which abl waits ten minutes
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newBehind(t)
				b.proxy.FailKind(kind, fault)
				if err := b.run(); err != nil {
					t.Fatalf("it ended: %v", err)
				}
				if b.proxy.Drops() != 1 && !strings.HasSuffix(kind, "/wait") { // nobody waits for what has ended
					t.Errorf("the fault befell %d requests", b.proxy.Drops())
				}
				b.settles(want)
			})
		}
	}
	t.Run("every answer is late", func(t *testing.T) {
		t.Parallel()
		b := newBehind(t)
		b.proxy.Delay(5 * time.Millisecond)
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.settles(want)
	})
}

// refusal is an engine that answers otherwise than it should.
type refusal struct {
	name, method, path string
	nth                int64
	answer             http.HandlerFunc
	is                 error
	says               string
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

func message(status int, text string) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"message":%q}`, text))
}

// What an engine refuses is named in its words, with what was asked; the state stays
// whole, and the next run goes on.
func TestEngineRefuses(t *testing.T) {
	want, _, _ := expected(t)
	for _, c := range []refusal{
		{"a box, for lack of room", "POST", "/containers/create", 3, message(500, "mkdir /var/lib/docker: no space left on device"), nil, "no space left on device"},
		{"a box, for lack of its image", "POST", "/containers/create", 2, message(404, "No such image: tools"), sandbox.ErrNoImage, "image"},
		{"a start", "POST", "/start", 3, message(500, "OCI runtime create failed: cannot allocate memory"), nil, "cannot allocate memory"},
		{"a network, since its range is taken", "POST", "/networks/create", 1, message(403, "Pool overlaps with other one on this address space"), nil, ""},
		{"a network, by a firewall", "POST", "/networks/create", 1, message(500, "Failed to program FILTER chain: iptables failed"), nil, "iptables failed"},
		{"a volume", "POST", "/volumes/create", 1, message(500, "error while mounting volume: permission denied"), nil, "permission denied"},
		{"to copy", "PUT", "/archive", 1, message(500, "write: read-only file system"), nil, "read-only file system"},
		{"everything, for now", "POST", "/containers/create", 2, message(503, "the daemon is shutting down"), nil, ""},
		{"to look", "GET", "/json", 4, message(500, "layer does not exist"), nil, "layer does not exist"},
		{"to speak sense", "GET", "/json", 4, says(200, `{"Id":`), nil, ""},
		{"to be an engine", "GET", "/json", 4, says(200, "<html>welcome</html>"), nil, "invalid character"},
		{"to remove a box, once", "DELETE", "/containers/", 2, message(500, "unable to remove filesystem: device or resource busy"), nil, ""},
		{"to remove a network", "DELETE", "/networks/", 1, message(403, "network has active endpoints"), nil, "active endpoints"},
		{"to wait", "POST", "/wait", 1, message(500, "containerd is not running"), nil, ""}, // it ends meanwhile
		{"to show a log", "GET", "/logs", 1, message(500, "configured logging driver does not support reading"), nil, "does not support reading"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newBehind(t)
			var seen, over atomic.Int64
			b.daemon.fault = func(method, path string) http.HandlerFunc {
				// Repeated, since abl believes an internal error only when the engine does.
				if method == c.method && strings.Contains(path, c.path) && seen.Add(1) >= c.nth && over.Load() == 0 && (c.says != "" || seen.Load() == c.nth) {
					return c.answer
				}
				return nil
			}
			err := b.run()
			over.Store(1)
			if seen.Load() < c.nth {
				t.Fatalf("only %d such requests came", seen.Load())
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("it ended with %v, want %q", err, c.says)
			}
			if f, serr := state.Load(b.Dir + "/.abl/state.json"); serr != nil || f.Phases["1"] == nil && err != nil {
				t.Errorf("the state: %v", serr)
			}
			if err != nil {
				if err := b.run(); err != nil {
					t.Fatalf("it does not go on: %v", err)
				}
			}
			b.settles(want)
		})
	}
}

// An engine that shuts down fails at whatever it is asked on connections that were open
// before: the phase passes all the same, in the same run.
func TestEngineFallsApart(t *testing.T) {
	want, _, _ := expected(t)
	b := newBehind(t)
	var mu sync.Mutex
	failed := map[string]bool{}
	b.daemon.fault = func(method, path string) http.HandlerFunc {
		words := strings.Split(path, "/")
		kind := method + " " + words[1] + " " + words[len(words)-1]
		mu.Lock()
		defer mu.Unlock()
		if failed[kind] || path == "/_ping" {
			return nil
		}
		failed[kind] = true
		return message(500, "database not open")
	}
	if err := b.run(); err != nil {
		t.Fatalf("it ended: %v", err)
	}
	if len(failed) < 10 {
		t.Errorf("only %d kinds of requests failed: %v", len(failed), failed)
	}
	b.settles(want)
}

// Somebody else's container stands under a name that abl needs: it is not taken for
// abl's own, whoever it belongs to, and once it is gone the next run goes on.
func TestForeignName(t *testing.T) {
	want, _, _ := expected(t)
	b := newBehind(t)
	var name string
	b.daemon.fault = func(method, path string) http.HandlerFunc {
		if method != "POST" || path != "/containers/create" || name != "" {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) { // somebody was quicker
			name = r.URL.Query().Get("name")
			box := sandbox.Box{Name: name, Image: "theirs", User: "1:1", Argv: []string{"sleep"}, Labels: map[string]string{sandbox.LabelProject: "theirs", sandbox.LabelKind: "theirs"}}
			b.daemon.put(r.Context(), box)
			message(409, "Conflict. The container name is already in use")(w, r)
		}
	}
	err := b.run()
	if !errors.Is(err, sandbox.ErrExists) || !strings.Contains(err.Error(), name) {
		t.Errorf("it ended with %v, want the name %q", err, name)
	}
	if there, ok := b.engine.Box(name); !ok || there.Image != "theirs" {
		t.Errorf("what stands there is %+v, %t", there, ok)
	}
	if err := b.engine.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := b.run(); err != nil {
		t.Fatalf("it does not go on: %v", err)
	}
	b.settles(want)
}
