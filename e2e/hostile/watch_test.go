package hostile

import (
	"abl/internal/testing/lab"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// watcher is a proxy between one abl and the engine. It forwards everything and inspects each
// container after its creation, after its start and before its removal, so that it misses no
// container, however short its life is.
type watcher struct {
	proxy      *httputil.ReverseProxy
	mu         sync.Mutex
	containers map[string]*container // by id
	argv       map[string]bool       // command lines of this machine's processes, sampled
}

// container is a container as the engine shows it.
type container struct {
	ID, Name, Kind string
	shown          [][]byte // responses of inspect, the first from before the start
}

const engineSocket = "/var/run/docker.sock"

// engine connects to the engine's own socket.
var engine = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", lab.Socket())
}}

// watch starts a watcher and returns it with its address for abl.
func watch(t *testing.T) (*watcher, string) {
	t.Helper()
	dir := lab.SocketDir(t)
	socket := filepath.Join(dir, "engine.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	w := &watcher{containers: map[string]*container{}, argv: map[string]bool{}}
	w.proxy = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	w.proxy.Transport, w.proxy.FlushInterval = engine, -1
	w.proxy.ErrorLog = nil
	web := &http.Server{Handler: w}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
	return w, "unix://" + socket
}

var (
	create = regexp.MustCompile(`^(/v[0-9.]+)?/containers/create$`)
	start  = regexp.MustCompile(`^(/v[0-9.]+)?/containers/([^/]+)/start$`)
	remove = regexp.MustCompile(`^(/v[0-9.]+)?/containers/([^/]+)$`)
)

func (w *watcher) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case r.Method == http.MethodPost && create.MatchString(path):
		answer := &copied{ResponseWriter: out, look: func(body []byte) {
			var made struct{ Id string }
			if json.Unmarshal(body, &made) == nil && made.Id != "" {
				w.look(made.Id)
			}
		}}
		w.proxy.ServeHTTP(answer, r)
		answer.done()
	case r.Method == http.MethodPost && start.MatchString(path):
		answer := &copied{ResponseWriter: out, look: func([]byte) { w.look(start.FindStringSubmatch(path)[2]) }}
		w.proxy.ServeHTTP(answer, r)
		answer.done()
	case r.Method == http.MethodDelete && remove.MatchString(path):
		w.look(remove.FindStringSubmatch(path)[2])
		w.proxy.ServeHTTP(out, r)
	default:
		w.proxy.ServeHTTP(out, r)
	}
}

// copied holds a response back until the watcher has inspected the container.
type copied struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	look   func([]byte)
}

func (c *copied) WriteHeader(status int)      { c.status = status }
func (c *copied) Write(b []byte) (int, error) { return c.body.Write(b) }
func (c *copied) Flush()                      {}

func (c *copied) done() {
	if c.status < 300 {
		c.look(c.body.Bytes())
	}
	c.ResponseWriter.WriteHeader(c.status)
	c.ResponseWriter.Write(c.body.Bytes())
}

// look stores the engine's current description of a container.
func (w *watcher) look(name string) {
	doc := inspect(name)
	if doc == nil {
		return
	}
	var is struct {
		ID, Name string
		Config   struct{ Labels map[string]string }
	}
	if json.Unmarshal(doc, &is) != nil {
		return
	}
	argv := commandLines()
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.containers[is.ID]
	if b == nil {
		b = &container{ID: is.ID, Name: strings.TrimPrefix(is.Name, "/"), Kind: is.Config.Labels["abl.kind"]}
		w.containers[b.ID] = b
	}
	b.shown = append(b.shown, doc)
	for _, line := range argv {
		w.argv[line] = true
	}
}

// inspect returns the engine's description of a container, or nil.
func inspect(name string) []byte {
	req, err := http.NewRequest(http.MethodGet, "http://engine/containers/"+url.PathEscape(name)+"/json", nil)
	if err != nil {
		return nil
	}
	resp, err := engine.RoundTrip(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	doc, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil
	}
	return doc
}

// seen returns the containers so far, sorted by name.
func (w *watcher) seen() (all []container) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.containers {
		all = append(all, *b)
	}
	slices.SortFunc(all, func(a, b container) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	return all
}

// lines returns the command lines seen so far.
func (w *watcher) lines() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range w.argv {
		all = append(all, line)
	}
	return all
}

// commandLines returns the command lines of all processes of this machine, where the engine runs
// unless it is remote.
func commandLines() (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) > 0 {
			all = append(all, string(bytes.ReplaceAll(data, []byte{0}, []byte{' '})))
		}
	}
	return all
}

// processesOf returns the processes of a container, by their control groups.
func processesOf(id string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && bytes.Contains(data, []byte(id)) {
			pids = append(pids, strings.Split(file, "/")[2])
		}
	}
	return pids
}

// The watcher sees a container that is never started, and one that ends immediately.
func TestWatcherSeesEveryContainer(t *testing.T) {
	s := newScene(t, usual)
	image := s.toolsImage()
	cli := func(args ...string) {
		cmd := exec.Command("docker", args...)
		cmd.Env = append(os.Environ(), "DOCKER_HOST="+s.engine, "DOCKER_TLS_VERIFY=", "DOCKER_CERT_PATH=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
	name := fmt.Sprintf("abl-test-hostile-%d", os.Getpid())
	cli("create", "--name", name, "--label", "abl.project=test-hostile", "-e", "MADE=1", image, "true")
	cli("rm", name)
	cli("run", "--rm", "--label", "abl.project=test-hostile", "-e", "RAN=1", image, "true")
	var all []byte
	for _, b := range s.watcher.seen() {
		all = append(all, bytes.Join(b.shown, nil)...)
	}
	wants(t, "the containers seen", string(all), "MADE=1", "RAN=1")
}
