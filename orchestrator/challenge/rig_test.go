package challenge

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"abl/orchestrator/dirs"
)

// rawApp answers each request with the very bytes that answers has for its
// address, "/close" at the end of which ends the connection.
func rawApp(t testing.TB, answers map[string]string) string {
	return start(t, func(ctx context.Context, l net.Listener) error {
		return serve(ctx, l, func(_ context.Context, conn net.Conn) {
			r := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(r)
				if err != nil {
					_, _ = io.Copy(conn, r) // what is no HTTP gets itself back
					return
				}
				if req.Header.Get("Expect") != "" {
					_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n")
				}
				body, _ := io.ReadAll(req.Body)
				what := answers[req.URL.Path]
				_, _ = io.WriteString(conn, strings.ReplaceAll(what, "BODY", string(body)))
				if strings.HasSuffix(req.URL.Path, "/close") {
					return
				}
				if strings.HasPrefix(what, "HTTP/1.1 101") || req.Method == http.MethodConnect {
					_, _ = io.Copy(conn, r)
					return
				}
			}
		})
	})
}

// reports collects what a proxy tells.
type reports struct {
	mu  sync.Mutex
	all []dirs.Mutated
}

func (r *reports) tell(m dirs.Mutated) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
}

// proxied is a proxy before an app; the function ends it and returns its last word.
func proxied(t testing.TB, to, name string) (at string, end func() dirs.Mutated) {
	at, all := proxiedTo(t, to, name)
	return at, func() dirs.Mutated { said := all(); return said[len(said)-1] }
}

// proxiedTo is the same; its function returns all that the proxy said.
func proxiedTo(t testing.TB, to, name string) (at string, end func() []dirs.Mutated) {
	t.Helper()
	m, err := Named(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var r reports
	p := &Proxy{To: to, Mutation: m, Tell: r.tell}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- p.Serve(ctx, l) }()
	end = sync.OnceValue(func() []dirs.Mutated {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
		return r.all
	})
	t.Cleanup(func() { end() })
	return l.Addr().String(), end
}

// notes is an app that keeps notes, with a list, Locations and ids.
type notes struct {
	mu    sync.Mutex
	next  int
	texts map[int]string
	log   []string
}

func newNotes(t testing.TB) (*notes, string) {
	n := &notes{texts: map[int]string{}}
	return n, start(t, func(ctx context.Context, l net.Listener) error {
		web := &http.Server{Handler: n.routes()}
		stop := context.AfterFunc(ctx, func() { web.Close() })
		defer stop()
		_ = web.Serve(l)
		return nil
	})
}

func (n *notes) routes() http.Handler {
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, format string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, format, args...)
	}
	item := func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.log = append(n.log, r.Method+" "+r.URL.Path)
		var id int
		_, _ = fmt.Sscan(r.PathValue("id"), &id)
		text, ok := n.texts[id]
		body, _ := io.ReadAll(r.Body)
		switch {
		case !ok:
			reply(w, 404, `{"error":"no note %d"}`, id)
		case r.Method == "PUT":
			n.texts[id] = string(body)
			reply(w, 200, `{"id":%d,"text":%q}`, id, body)
		case r.Method == "DELETE":
			delete(n.texts, id)
			w.WriteHeader(204)
		default:
			reply(w, 200, `{"id":%d,"text":%q}`, id, text)
		}
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		mux.HandleFunc(method+" /notes/{id}", item)
	}
	mux.HandleFunc("GET /notes", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if r.Header.Get("Authorization") == "other" {
			reply(w, 200, `"not yours"`)
			return
		}
		var all []string
		for id, text := range n.texts {
			all = append(all, fmt.Sprintf(`{"id":%d,"text":%q}`, id, text))
		}
		slices.Sort(all)
		reply(w, 200, "[%s]", strings.Join(all, ","))
	})
	mux.HandleFunc("POST /notes", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		if len(body) == 0 {
			reply(w, 400, `{"error":"no text"}`)
			return
		}
		n.next++
		switch string(body) {
		case "nowhere": // is not to be found later
			reply(w, 201, `{"id":99}`)
			return
		case "once":
			if slices.Contains(n.log, "POST once") {
				reply(w, 409, `{"error":"it is there"}`)
				return
			}
		}
		n.texts[n.next] = string(body)
		n.log = append(n.log, "POST "+string(body))
		reply(w, 201, `{"id":%d,"text":%q}`, n.next, body)
	})
	return mux
}

// session sends requests, one line each as "METHOD PATH BODY", and prints status
// and body of every answer.
func session(t testing.TB, at string, requests ...string) string {
	t.Helper()
	var b strings.Builder
	for _, line := range requests {
		parts := strings.SplitN(line+"  ", " ", 3)
		req, err := http.NewRequestWithContext(t.Context(), parts[0], "http://"+at+parts[1], strings.NewReader(strings.TrimSpace(parts[2])))
		if err != nil {
			t.Fatal(err)
		}
		if who, ok := strings.CutPrefix(parts[2], "as "); ok {
			req.Header.Set("Authorization", strings.TrimSpace(who))
			req.Body, req.ContentLength = nil, 0
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		resp.Body.Close()
		fmt.Fprintf(&b, "%d %s\n", resp.StatusCode, body)
	}
	return b.String()
}
