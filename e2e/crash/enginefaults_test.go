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

// version matches the prefix of every path of the engine's API except that of the first request.
var version = regexp.MustCompile(`^/v1\.\d+/`)

// proxied is a plant whose phase uses the real adapter of the engine's API, through a proxy.
type proxied struct {
	*plant
	daemon *daemon
	proxy  *lab.Proxy
	notes  atomic.Int64 // number of messages that the engine is away, or back
}

func newProxied(t *testing.T) *proxied {
	t.Helper()
	p := newPlant(t)
	d := newDaemon(t, p.engine)
	return &proxied{plant: p, daemon: d, proxy: lab.NewProxyTo(t, d.socket)}
}

// run plays the phase like a new abl.
func (b *proxied) run() error {
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
		err = fmt.Errorf("the phase stopped as %s: %v", r.Status, r.Why)
	}
	return err
}

// checkEnd checks that the phase ends like an undisturbed one and leaves nothing.
func (b *proxied) checkEnd(want string) {
	b.Helper()
	checkSame(b.TB.(*testing.T), want, b.print())
	if left := b.daemon.left(); len(left) > 0 {
		b.Errorf("left on the engine: got %v, want nothing", left)
	}
}

// recorded holds the kinds of requests of an undisturbed phase.
var recorded struct {
	sync.Once
	kinds []string
}

func kindsOfRequests(t *testing.T) []string {
	t.Helper()
	recorded.Do(func() {
		t.Run("recorded", func(t *testing.T) {
			b := newProxied(t)
			if err := b.run(); err != nil {
				t.Fatal(err)
			}
			for _, kind := range b.proxy.Kinds() {
				if kind != "HEAD /_ping" { // sent before the start of the phase: TestNoEngine
					recorded.kinds = append(recorded.kinds, kind)
				}
			}
		})
	})
	return recorded.kinds
}

var faultNames = map[lab.Fault]string{
	lab.Lost: "is performed, and its response lost", lab.Severed: "is cut off", lab.Refused: "is refused",
	lab.Halved: "is performed, and its response cut in half", lab.Late: "is performed after the client has given up",
}

// Every fault of a request leads to the same end as an undisturbed phase: the response is lost
// after the engine acted, or arrives in half; the request does not arrive, or arrives late; or
// connections are refused for a while. Nothing is done twice, and nothing is left. A request that
// changes something gets its fault for each container separately.
func TestEngineFaults(t *testing.T) {
	want, _, _ := expected(t)
	for i, kind := range kindsOfRequests(t) {
		if testing.Short() && i%4 != 0 {
			continue
		}
		for fault, name := range faultNames {
			changes := strings.HasPrefix(kind, "P") && !strings.HasSuffix(kind, "/wait") || kind == "DELETE /containers/build"
			first := kind == "GET /containers/build/logs" && fault == lab.Late // costs a call unless it is repeated
			if os.Getenv("ABL_SOAK") == "" && !first &&
				(fault == lab.Late || (i+int(fault))%12 != 0 && !(changes && fault == lab.Lost)) {
				continue // a late one takes as long as abl waits for a response
			}
			if fault == lab.Late && strings.HasSuffix(kind, "/archive") {
				continue // abl waits ten minutes for it
			}
			t.Run(kind+" "+name, func(t *testing.T) {
				t.Parallel()
				b := newProxied(t)
				b.proxy.FailKind(kind, fault)
				if err := b.run(); err != nil {
					t.Fatalf("the phase: got error %v, want none", err)
				}
				if b.proxy.Drops() != 1 && !strings.HasSuffix(kind, "/wait") { // abl does not wait for a container that has ended
					t.Errorf("got %d requests with the fault, want 1", b.proxy.Drops())
				}
				b.checkEnd(want)
			})
		}
	}
	t.Run("every response is late", func(t *testing.T) {
		t.Parallel()
		b := newProxied(t)
		b.proxy.Delay(5 * time.Millisecond)
		if err := b.run(); err != nil {
			t.Fatal(err)
		}
		b.checkEnd(want)
	})
}

// refusal is an engine that responds with an error.
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

// If the engine refuses a request, the error contains the engine's message and the request. The
// state stays valid, and the next run continues.
func TestEngineRefuses(t *testing.T) {
	want, _, _ := expected(t)
	for _, c := range []refusal{
		{
			"a container: no space",
			"POST",
			"/containers/create",
			3,
			message(500, "mkdir /var/lib/docker: no space left on device"),
			nil,
			"no space left on device",
		},
		{
			"a container: no image",
			"POST",
			"/containers/create",
			2,
			message(404, "No such image: tools"),
			sandbox.ErrNoImage,
			"image",
		},
		{
			"a start",
			"POST",
			"/start",
			3,
			message(500, "OCI runtime create failed: cannot allocate memory"),
			nil,
			"cannot allocate memory",
		},
		{
			"a network: its range is in use",
			"POST",
			"/networks/create",
			1,
			message(403, "Pool overlaps with other one on this address space"),
			nil,
			"",
		},
		{
			"a network: firewall error",
			"POST",
			"/networks/create",
			1,
			message(500, "Failed to program FILTER chain: iptables failed"),
			nil,
			"iptables failed",
		},
		{
			"a volume",
			"POST",
			"/volumes/create",
			1,
			message(500, "error while mounting volume: permission denied"),
			nil,
			"permission denied",
		},
		{"to copy", "PUT", "/archive", 1, message(500, "write: read-only file system"), nil, "read-only file system"},
		{"every request, for a while", "POST", "/containers/create", 2, message(503, "the daemon is shutting down"), nil, ""},
		{"to look", "GET", "/json", 4, message(500, "layer does not exist"), nil, "layer does not exist"},
		{"with an invalid response", "GET", "/json", 4, says(200, `{"Id":`), nil, ""},
		{"with another service's response", "GET", "/json", 4, says(200, "<html>welcome</html>"), nil, "invalid character"},
		{
			"to remove a container, once",
			"DELETE",
			"/containers/",
			2,
			message(500, "unable to remove filesystem: device or resource busy"),
			nil,
			"",
		},
		{
			"to remove a network",
			"DELETE",
			"/networks/",
			1,
			message(403, "network has active endpoints"),
			nil,
			"active endpoints",
		},
		{
			"to wait",
			"POST",
			"/wait",
			1,
			message(500, "containerd is not running"),
			nil,
			"",
		},
		{
			"to show a log",
			"GET",
			"/logs",
			1,
			message(500, "configured logging driver does not support reading"),
			nil,
			"does not support reading",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newProxied(t)
			var seen, over atomic.Int64
			reached := make(chan struct{})
			if c.name == "to wait" { // abl does not wait for a container that has ended
				b.made.Worked = func(sandbox.ContainerConfig) { <-reached }
			}
			b.daemon.fault = func(method, path string) http.HandlerFunc {
				if method != c.method || !strings.Contains(path, c.path) {
					return nil
				}
				n := seen.Add(1)
				if n == c.nth {
					close(reached)
				}
				// Repeat the error, because abl believes an internal error only if the engine
				// repeats it.
				if n >= c.nth && over.Load() == 0 && (c.says != "" || n == c.nth) {
					return c.answer
				}
				return nil
			}
			err := b.run()
			over.Store(1)
			if seen.Load() < c.nth {
				t.Fatalf("requests of this kind: got %d, want %d or more", seen.Load(), c.nth)
			}
			if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || c.is != nil && !errors.Is(err, c.is)) {
				t.Errorf("got error %v, want %q", err, c.says)
			}
			if f, serr := state.Load(b.Dir + "/.abl/state.json"); serr != nil || f.Phases["1"] == nil && err != nil {
				t.Errorf("state.json: got error %v, want a state with phase 1", serr)
			}
			if err != nil {
				if err := b.run(); err != nil {
					t.Fatalf("the next run: got error %v, want none", err)
				}
			}
			b.checkEnd(want)
		})
	}
}

// An engine that is shutting down fails every request on open connections. The phase passes
// nevertheless, in the same run.
func TestEngineShutsDown(t *testing.T) {
	want, _, _ := expected(t)
	b := newProxied(t)
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
		t.Fatalf("the phase: got error %v, want none", err)
	}
	if len(failed) < 10 {
		t.Errorf("kinds of requests that failed: got %d, want 10 or more: %v", len(failed), failed)
	}
	b.checkEnd(want)
}

// Another program's container has a name that abl needs. abl does not take it for its own,
// whatever its labels, and the next run continues once the container is gone.
func TestForeignName(t *testing.T) {
	want, _, _ := expected(t)
	b := newProxied(t)
	var name string
	b.daemon.fault = func(method, path string) http.HandlerFunc {
		if method != "POST" || path != "/containers/create" || name != "" {
			return nil
		}
		return func(w http.ResponseWriter, r *http.Request) { // another program was faster
			name = r.URL.Query().Get("name")
			container := sandbox.ContainerConfig{
				Name:   name,
				Image:  "theirs",
				User:   "1:1",
				Argv:   []string{"sleep"},
				Labels: map[string]string{sandbox.LabelProject: "theirs", sandbox.LabelKind: "theirs"},
			}
			b.daemon.put(r.Context(), container)
			message(409, "Conflict. The container name is already in use")(w, r)
		}
	}
	err := b.run()
	if !errors.Is(err, sandbox.ErrExists) || !strings.Contains(err.Error(), name) {
		t.Errorf("got error %v, want the name %q", err, name)
	}
	if there, ok := b.engine.Config(name); !ok || there.Image != "theirs" {
		t.Errorf("container %q: got %+v, exists %t, want the image theirs", name, there, ok)
	}
	if err := b.engine.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := b.run(); err != nil {
		t.Fatalf("the next run: got error %v, want none", err)
	}
	b.checkEnd(want)
}
