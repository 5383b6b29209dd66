package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// request is one call of the engine in the other process, response is its result.
type request struct {
	Config  sandbox.ContainerConfig
	Network sandbox.Network
	Volume  sandbox.Volume
	Name    string
	Names   []string
	Dir     string
	Labels  map[string]string
	Grace   time.Duration
	Max     int64
	Data    []byte
}

type response struct {
	Text    string
	Texts   []string
	Subnets []sandbox.Subnet
	Proof   sandbox.Proof
	Status  sandbox.Status
	Exit    sandbox.Exit
	Load    sandbox.Load
	Bytes   int64
	Data    []byte
	Err     string
	Kind    int // 1 + index in kinds, 0 for other errors
}

// kinds lists the errors that keep their identity on the other side.
var kinds = []error{
	sandbox.ErrNotFound, sandbox.ErrExists, sandbox.ErrNoImage, sandbox.ErrUnreachable,
	sandbox.ErrUnproven,
}

// serve lets another process use the engine through a socket.
func serve(l net.Listener, e *sandboxtest.Engine) {
	handlers := http.NewServeMux()
	for name, do := range map[string]func(context.Context, request, *response) error{
		"Create": func(ctx context.Context, q request, a *response) (err error) {
			a.Text, err = e.Create(ctx, q.Config)
			return
		},
		"Prove": func(ctx context.Context, q request, a *response) (err error) {
			a.Proof, err = e.Prove(ctx, q.Config)
			return
		},
		"Subnets": func(ctx context.Context, q request, a *response) (err error) {
			a.Subnets, err = e.Subnets(ctx, q.Names)
			return
		},
		"Start": func(ctx context.Context, q request, _ *response) error { return e.Start(ctx, q.Name) },
		"Status": func(ctx context.Context, q request, a *response) (err error) {
			a.Status, err = e.Status(ctx, q.Name)
			return
		},
		"Wait": func(ctx context.Context, q request, a *response) (err error) {
			a.Exit, err = e.Wait(ctx, q.Name)
			return
		},
		"Stop":   func(ctx context.Context, q request, _ *response) error { return e.Stop(ctx, q.Name, q.Grace) },
		"Remove": func(ctx context.Context, q request, _ *response) error { return e.Remove(ctx, q.Name) },
		"Logs": func(ctx context.Context, q request, a *response) (err error) {
			a.Data, err = e.Logs(ctx, q.Name, q.Max)
			return
		},
		"Load": func(ctx context.Context, q request, a *response) (err error) {
			a.Load, err = e.Load(ctx, q.Name)
			return err
		},
		"Feed": func(ctx context.Context, q request, _ *response) error { return e.Feed(ctx, q.Name, q.Data) },
		"Usage": func(ctx context.Context, q request, a *response) (err error) {
			a.Bytes, err = e.Usage(ctx, q.Name)
			return
		},
		"Head": func(ctx context.Context, q request, a *response) (err error) {
			a.Data, err = e.Head(ctx, q.Name, q.Max)
			return
		},
		"EnsureNetwork": func(ctx context.Context, q request, _ *response) error { return e.EnsureNetwork(ctx, q.Network) },
		"EnsureVolume":  func(ctx context.Context, q request, _ *response) error { return e.EnsureVolume(ctx, q.Volume) },
		"Sweep": func(ctx context.Context, q request, a *response) (err error) {
			a.Texts, err = e.Sweep(ctx, q.Labels, nil)
			return
		},
		"CopyIn": func(ctx context.Context, q request, _ *response) error {
			return e.CopyIn(ctx, q.Name, q.Dir, func(w io.Writer) error {
				_, err := w.Write(q.Data)
				return err
			})
		},
	} {
		handlers.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			var q request
			var a response
			err := json.NewDecoder(r.Body).Decode(&q)
			if err == nil {
				err = do(r.Context(), q, &a)
			}
			if err != nil {
				a.Err = err.Error()
				for i, kind := range kinds {
					if errors.Is(err, kind) {
						a.Kind = 1 + i
					}
				}
			}
			_ = json.NewEncoder(w).Encode(a)
		})
	}
	_ = http.Serve(l, handlers)
}

// remote is the engine of the other process.
type remote struct {
	sandbox.Engine // nil: the methods that are not declared here are not used
	http.Client
}

func dial(socket string) *remote {
	return &remote{Client: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// remoteError is an error of the other side.
type remoteError struct {
	text string
	kind error
}

func (t remoteError) Error() string { return t.text }
func (t remoteError) Unwrap() error { return t.kind }

func (e *remote) ask(ctx context.Context, method string, q request) (a response, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://engine/"+method, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	resp, err := e.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		return a, fmt.Errorf("%w: %w", sandbox.ErrUnreachable, err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		return a, err
	}
	if a.Err == "" {
		return a, nil
	}
	if a.Kind > 0 {
		return a, remoteError{a.Err, kinds[a.Kind-1]}
	}
	return a, errors.New(a.Err)
}

func (e *remote) Create(ctx context.Context, b sandbox.ContainerConfig) (string, error) {
	a, err := e.ask(ctx, "Create", request{Config: b})
	return a.Text, err
}

func (e *remote) Prove(ctx context.Context, b sandbox.ContainerConfig) (sandbox.Proof, error) {
	a, err := e.ask(ctx, "Prove", request{Config: b})
	return a.Proof, err
}

func (e *remote) Feed(ctx context.Context, name string, data []byte) error {
	_, err := e.ask(ctx, "Feed", request{Name: name, Data: data})
	return err
}

func (e *remote) Subnets(ctx context.Context, networks []string) ([]sandbox.Subnet, error) {
	a, err := e.ask(ctx, "Subnets", request{Names: networks})
	return a.Subnets, err
}

func (e *remote) Start(ctx context.Context, name string) error {
	_, err := e.ask(ctx, "Start", request{Name: name})
	return err
}

func (e *remote) Status(ctx context.Context, name string) (sandbox.Status, error) {
	a, err := e.ask(ctx, "Status", request{Name: name})
	return a.Status, err
}

func (e *remote) Wait(ctx context.Context, name string) (sandbox.Exit, error) {
	a, err := e.ask(ctx, "Wait", request{Name: name})
	return a.Exit, err
}

func (e *remote) Stop(ctx context.Context, name string, grace time.Duration) error {
	_, err := e.ask(ctx, "Stop", request{Name: name, Grace: grace})
	return err
}

func (e *remote) Remove(ctx context.Context, name string) error {
	_, err := e.ask(ctx, "Remove", request{Name: name})
	return err
}

func (e *remote) Logs(ctx context.Context, name string, max int64) ([]byte, error) {
	a, err := e.ask(ctx, "Logs", request{Name: name, Max: max})
	return a.Data, err
}

func (e *remote) Load(ctx context.Context, name string) (sandbox.Load, error) {
	a, err := e.ask(ctx, "Load", request{Name: name})
	return a.Load, err
}

func (e *remote) Usage(ctx context.Context, volume string) (int64, error) {
	a, err := e.ask(ctx, "Usage", request{Name: volume})
	return a.Bytes, err
}

func (e *remote) Head(ctx context.Context, name string, max int64) ([]byte, error) {
	a, err := e.ask(ctx, "Head", request{Name: name, Max: max})
	return a.Data, err
}

func (e *remote) EnsureNetwork(ctx context.Context, n sandbox.Network) error {
	_, err := e.ask(ctx, "EnsureNetwork", request{Network: n})
	return err
}

func (e *remote) EnsureVolume(ctx context.Context, v sandbox.Volume) error {
	_, err := e.ask(ctx, "EnsureVolume", request{Volume: v})
	return err
}

// Sweep supports no keep function, because it cannot be called from the other process.
func (e *remote) Sweep(
	ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool,
) ([]string, error) {
	if keep != nil {
		return nil, errors.New("internal error: a remote sweep cannot call keep")
	}
	a, err := e.ask(ctx, "Sweep", request{Labels: labels})
	return a.Texts, err
}

func (e *remote) CopyIn(ctx context.Context, name, dir string, tree func(io.Writer) error) error {
	var data bytes.Buffer
	if err := tree(&data); err != nil {
		return err
	}
	_, err := e.ask(ctx, "CopyIn", request{Name: name, Dir: dir, Data: data.Bytes()})
	return err
}
