package crash

import (
	"abl/internal/testing/lab"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// daemon serves the part of the engine's API that abl uses, for an engine in memory. Inspecting
// an object returns what was requested at its creation. So tests can inject faults below the real
// adapter without a real engine.
type daemon struct {
	engine *sandboxtest.Engine
	socket string

	mu         sync.Mutex
	containers map[string]object // creation requests, by id
	networks   map[string]object // by name
	volumes    map[string]object
	fault      func(method, path string) http.HandlerFunc // responds instead of the engine, unless nil or returning nil
}

// object is a JSON object.
type object = map[string]any

func newDaemon(t *testing.T, engine *sandboxtest.Engine) *daemon {
	t.Helper()
	d := &daemon{
		engine:     engine,
		socket:     filepath.Join(lab.SocketDir(t), "s"),
		containers: map[string]object{},
		networks:   map[string]object{},
		volumes:    map[string]object{},
	}
	l, err := net.Listen("unix", d.socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: d.handler()}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return d
}

// left returns the names of all objects on the engine.
func (d *daemon) left() (all []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.networks {
		all = append(all, "network "+name)
	}
	for name := range d.volumes {
		all = append(all, "volume "+name)
	}
	return append(all, d.engine.Left()...)
}

func (d *daemon) handler() http.Handler {
	m := http.NewServeMux()
	answer := func(pattern string, do func(r *http.Request) (any, error)) {
		m.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := do(r)
			reply(w, v, err)
		})
	}
	answer("GET /_ping", func(*http.Request) (any, error) { return "OK", nil })
	answer("GET /info", func(*http.Request) (any, error) {
		return object{
			"ID":            "memory",
			"ServerVersion": "20.10",
			"OSType":        "linux",
			"NCPU":          2,
			"MemTotal":      1 << 33,
			"SwapLimit":     true,
		}, nil
	})
	answer("GET /images/{name}/json", func(r *http.Request) (any,
		error) {
		return object{"Id": "sha256:image", "Config": object{}}, nil
	})
	d.stores(answer)
	d.life(answer)
	m.HandleFunc("GET /containers/{id}/logs", d.logs)
	m.HandleFunc("POST /containers/{id}/wait", d.wait)
	m.HandleFunc("POST /containers/{id}/attach", d.attach)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = version.ReplaceAllString(r.URL.Path, "/")
		d.mu.Lock()
		fault := d.fault
		d.mu.Unlock()
		if fault != nil {
			if instead := fault(r.Method, r.URL.Path); instead != nil {
				instead(w, r)
				return
			}
		}
		m.ServeHTTP(w, r)
	})
}

// reply responds like the engine.
func reply(w http.ResponseWriter, v any, err error) {
	w.Header().Set("Api-Version", "1.41")
	w.Header().Set("Content-Type", "application/json")
	switch {
	case errors.Is(err, sandbox.ErrNotFound):
		w.WriteHeader(http.StatusNotFound)
	case errors.Is(err, sandbox.ErrExists):
		w.WriteHeader(http.StatusConflict)
	case err != nil:
		w.WriteHeader(http.StatusInternalServerError)
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err != nil {
		v = object{"message": err.Error()}
	}
	_ = json.NewEncoder(w).Encode(v)
}

func body(r *http.Request) (o object) {
	_ = json.NewDecoder(r.Body).Decode(&o)
	return o
}

// at returns a member of nested objects.
func at(o object, path ...string) any {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(object)
	}
	return o[path[len(path)-1]]
}

func stringList(v any) (all []string) {
	list, _ := v.([]any)
	for _, one := range list {
		all = append(all, fmt.Sprint(one))
	}
	return all
}

// command returns the command of a container: a program of abl, or the image's entrypoint with
// these arguments.
func command(requested object) []string {
	if argv := stringList(requested["Entrypoint"]); len(argv) > 0 {
		return argv
	}
	return stringList(requested["Cmd"])
}

// labelled reports whether an object has the labels that a list request asks for.
func labelled(r *http.Request, labels any) bool {
	var f struct {
		Label map[string]bool `json:"label"`
	}
	if text := r.URL.Query().Get("filters"); text != "" {
		_ = json.Unmarshal([]byte(text), &f)
	}
	has, _ := labels.(object)
	for want := range f.Label {
		name, value, some := strings.Cut(want, "=")
		if got, there := has[name]; !there || some && got != value {
			return false
		}
	}
	return true
}

// stores handles networks and volumes.
func (d *daemon) stores(answer func(string, func(*http.Request) (any, error))) {
	for kind, all := range map[string]map[string]object{"networks": d.networks, "volumes": d.volumes} {
		locked := func(do func(r *http.Request) (any, error)) func(*http.Request) (any, error) {
			return func(r *http.Request) (any, error) {
				d.mu.Lock()
				defer d.mu.Unlock()
				return do(r)
			}
		}
		answer("POST /"+kind+"/create", locked(func(r *http.Request) (any, error) {
			o := body(r)
			name, _ := o["Name"].(string)
			if _, there := all[name]; there && kind == "networks" {
				return nil, fmt.Errorf("network with name %s already exists: %w", name, sandbox.ErrExists)
			}
			o["Id"] = name
			if o["EnableIPv6"] == nil {
				o["EnableIPv6"] = false
			}
			all[name] = o
			return o, nil
		}))
		answer("GET /"+kind+"/{name}", locked(func(r *http.Request) (any, error) {
			if o, there := all[r.PathValue("name")]; there {
				return o, nil
			}
			return nil, fmt.Errorf("no such object: %w", sandbox.ErrNotFound)
		}))
		answer("DELETE /"+kind+"/{name}", locked(func(r *http.Request) (any, error) {
			if _, there := all[r.PathValue("name")]; !there {
				return nil, fmt.Errorf("no such object: %w", sandbox.ErrNotFound)
			}
			delete(all, r.PathValue("name"))
			return nil, nil
		}))
		answer("GET /"+kind, locked(func(r *http.Request) (any, error) {
			list := []any{}
			for _, o := range all {
				if labelled(r, o["Labels"]) {
					list = append(list, o)
				}
			}
			if kind == "volumes" {
				return object{"Volumes": list}, nil
			}
			return list, nil
		}))
	}
}

// life handles containers.
func (d *daemon) life(answer func(string, func(*http.Request) (any, error))) {
	answer("POST /containers/create", d.create)
	answer("GET /containers/{id}/json", func(r *http.Request) (any, error) { return d.inspect(r, r.PathValue("id")) })
	answer("GET /containers/json", func(r *http.Request) (any, error) {
		list := []any{}
		all, err := d.engine.List(r.Context(), nil)
		for _, s := range all {
			o, _ := d.inspect(r, s.ID)
			if labelled(r, at(o, "Config", "Labels")) {
				list = append(list, object{"Id": s.ID, "Names": []string{"/" + s.Name}})
			}
		}
		return list, err
	})
	answer("POST /containers/{id}/start", func(r *http.Request) (any, error) {
		return nil,
			d.engine.Start(r.Context(), r.PathValue("id"))
	})
	answer("POST /containers/{id}/stop", func(r *http.Request) (any, error) {
		return nil, d.engine.Stop(r.Context(), r.PathValue("id"), time.Second)
	})
	answer("DELETE /containers/{id}", func(r *http.Request) (any, error) {
		if _, err := d.engine.Status(r.Context(), r.PathValue("id")); err != nil {
			return nil, err
		}
		return nil, d.engine.Remove(r.Context(), r.PathValue("id"))
	})
	answer("PUT /containers/{id}/archive", func(r *http.Request) (any, error) {
		return object{}, d.engine.CopyIn(r.Context(), r.PathValue("id"), r.URL.Query().Get("path"), func(w io.Writer) error {
			_, err := io.Copy(w, r.Body)
			return err
		})
	})
}

func (d *daemon) create(r *http.Request) (any, error) {
	o := body(r)
	b := sandbox.ContainerConfig{
		Name:   r.URL.Query().Get("name"),
		Image:  "i",
		User:   "1:1",
		Argv:   command(o),
		Env:    stringList(o["Env"]),
		Labels: map[string]string{},
		Stdin:  o["OpenStdin"] == true,
	}
	b.Reach.Host = at(o, "HostConfig", "NetworkMode") == "host"
	labels, _ := o["Labels"].(object)
	for name, value := range labels {
		b.Labels[name] = fmt.Sprint(value)
	}
	if join, ok := strings.CutPrefix(fmt.Sprint(at(o, "HostConfig", "NetworkMode")), "container:"); ok {
		b.Reach.Join = join
	}
	mounts, _ := at(o, "HostConfig", "Mounts").([]any)
	for _, m := range mounts {
		if m := m.(object); m["Type"] == "bind" {
			b.Mounts = append(b.Mounts, sandbox.Mount{
				What:   sandbox.Workspace,
				Source: fmt.Sprint(m["Source"]),
				Target: fmt.Sprint(m["Target"]),
			})
		}
	}
	id, err := d.engine.Create(r.Context(), b)
	if err != nil {
		return nil, err
	}
	host, _ := o["HostConfig"].(object)
	host["MaskedPaths"], host["ReadonlyPaths"] = []string{"/proc/kcore", "/sys/firmware"}, []string{"/proc/sys",
		"/proc/sysrq-trigger"}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.containers[id] = o
	return object{"Id": id}, nil
}

// put adds a container that another program created.
func (d *daemon) put(ctx context.Context, b sandbox.ContainerConfig) {
	id, err := d.engine.Create(ctx, b)
	if err != nil {
		panic(err)
	}
	labels := object{}
	for name, value := range b.Labels {
		labels[name] = value
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.containers[id] = object{"HostConfig": object{}, "Cmd": []any{"sleep"}, "Labels": labels}
}

// inspect returns a container as it was requested, with the fields that engines add.
func (d *daemon) inspect(r *http.Request, name string) (object, error) {
	s, err := d.engine.Status(r.Context(), name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	requested := d.containers[s.ID]
	host, _ := requested["HostConfig"].(object)
	argv := command(requested)
	nets, _ := at(requested, "NetworkingConfig", "EndpointsConfig").(object)
	if host["NetworkMode"] == "host" {
		nets = object{"host": object{}}
	}
	state := object{
		"Status":    string(s.State),
		"Running":   s.State == sandbox.Running,
		"ExitCode":  s.ExitCode,
		"OOMKilled": s.OOMKilled,
	}
	for key, when := range map[string]time.Time{"StartedAt": s.StartedAt, "FinishedAt": s.FinishedAt} {
		state[key] = when.UTC().Format(time.RFC3339Nano)
	}
	return object{
		"Id": s.ID, "Name": "/" + s.Name, "Path": argv[0], "Args": argv[1:], "Image": "sha256:image", "State": state,
		"Config": requested, "HostConfig": host, "Mounts": mountPoints(host), "NetworkSettings": object{"Networks": nets},
	}, nil
}

func mountPoints(host object) []any {
	points := []any{}
	all, _ := host["Mounts"].([]any)
	for _, m := range all {
		m := m.(object)
		readOnly, _ := m["ReadOnly"].(bool)
		p := object{
			"Type":        m["Type"],
			"Source":      m["Source"],
			"Destination": m["Target"],
			"RW":          !readOnly,
			"Propagation": "rprivate",
		}
		if m["Type"] == "volume" {
			p["Name"], p["Driver"] = m["Source"], "local"
		}
		points = append(points, p)
	}
	return points
}

// wait sends the headers immediately, and the response once the container has ended.
func (d *daemon) wait(w http.ResponseWriter, r *http.Request) {
	if _, err := d.engine.Status(r.Context(), r.PathValue("id")); err != nil {
		reply(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush()
	exit, _ := d.engine.Wait(r.Context(), r.PathValue("id"))
	_ = json.NewEncoder(w).Encode(object{"StatusCode": exit.Code})
}

// attach writes the data that follows the request to the container's standard input.
func (d *daemon) attach(w http.ResponseWriter, r *http.Request) {
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	const upgraded = "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n" +
		"Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	if _, err := io.WriteString(conn, upgraded); err != nil {
		return
	}
	if data, err := io.ReadAll(rw); err == nil && len(data) > 0 {
		_ = d.engine.Feed(r.Context(), r.PathValue("id"), data)
	}
}

// logs sends frames, like the engine does for a container without a terminal.
func (d *daemon) logs(w http.ResponseWriter, r *http.Request) {
	text, err := d.engine.Logs(r.Context(), r.PathValue("id"), 1<<20)
	if err == nil && r.URL.Query().Get("follow") == "1" {
		text, err = d.engine.Head(r.Context(), r.PathValue("id"), 1<<20)
	}
	if err != nil {
		reply(w, nil, err)
		return
	}
	frame := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, uint32(len(text)))
	_, _ = io.Writer(w).Write(slices.Concat(frame, text))
}
