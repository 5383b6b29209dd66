package docker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Methods that BuildKit calls in a client's session. abl encodes the few messages itself, because
// BuildKit's module needs the successor of Docker's client (docs/dependencies.md).
const (
	askCredentials = "/moby.filesync.v1.Auth/Credentials"
	askHealth      = "/grpc.health.v1.Health/Check"
)

// session answers BuildKit's requests for registry credentials until it is closed.
type session struct {
	id     string
	server *grpc.Server
	served chan error
	failed error // error of the credential lookup
	mu     sync.Mutex
}

// openSession opens a session with the engine.
func (e *stores) openSession(ctx context.Context) (*session, error) {
	s := &session{id: rand.Text(), served: make(chan error, 1)}
	conn, err := e.api.DialHijack(ctx, "/session", "h2c", map[string][]string{
		"X-Docker-Expose-Session-Uuid":        {s.id},
		"X-Docker-Expose-Session-Name":        {"abl"},
		"X-Docker-Expose-Session-Grpc-Method": {askCredentials},
	})
	if err != nil {
		return nil, err
	}
	s.server = grpc.NewServer(grpc.ForceServerCodec(rawCodec{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			return s.answer(stream, e.logins)
		}))
	go func() { s.served <- s.server.Serve(&oneConn{conn: conn, closed: make(chan struct{})}) }()
	return s, nil
}

// close ends the session and returns the error of the credential lookup.
func (s *session) close() error {
	s.server.Stop()
	<-s.served
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// answer replies to a request of BuildKit: its health check, or a question for credentials.
func (s *session) answer(stream grpc.ServerStream, known logins) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var asked, reply []byte
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	switch method {
	case askHealth:
		reply = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1) // it serves
	case askCredentials:
		host, err := field(asked, 1)
		if err != nil {
			return status.Error(codes.InvalidArgument, err.Error())
		}
		auth, err := known.of(stream.Context(), string(host))
		if err != nil { // the image may be public, so the build continues
			s.mu.Lock()
			s.failed = err
			s.mu.Unlock()
		}
		if auth.IdentityToken != "" {
			auth.Username, auth.Password = "", auth.IdentityToken
		}
		reply = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), auth.Username)
		reply = protowire.AppendString(protowire.AppendTag(reply, 2, protowire.BytesType), auth.Password)
	default:
		return status.Errorf(codes.Unimplemented, "abl has no method %s", method)
	}
	return stream.SendMsg(&reply)
}

// rawCodec passes messages on unchanged.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error) {
	if data, ok := v.(*[]byte); ok {
		return *data, nil
	}
	return nil, fmt.Errorf("cannot send a %T", v)
}

func (rawCodec) Unmarshal(data []byte, v any) error {
	into, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("cannot receive a %T", v)
	}
	*into = append([]byte(nil), data...)
	return nil
}

func (rawCodec) Name() string { return "proto" }

// oneConn is a listener with one connection.
type oneConn struct {
	conn   net.Conn
	mu     sync.Mutex
	taken  bool
	once   sync.Once
	closed chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	first := !l.taken
	l.taken = true
	l.mu.Unlock()
	if first {
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

// traceID marks the messages in which BuildKit reports the steps of a build.
const traceID = "moby.buildkit.trace"

// trace converts BuildKit's reports to the output format of the classic builder.
type trace struct {
	say     func(string)
	steps   map[string]*vertex // by digest
	current string             // digest of the step that printed last
}

// vertex is a step of a build.
type vertex struct {
	name    string
	started bool
	left    bool     // another step printed after it
	rest    string   // an incomplete line
	lines   []string // the last printed lines
}

const (
	vertexLines = 2000 // kept lines of a step, which are printed again if it fails
	internal    = "[internal]"
	unpacks     = "copy /context /" // the step that unpacks the build context
)

// read decodes one report: field 1 has the steps of the build, field 3 their output.
func (t *trace) read(aux json.RawMessage) error {
	var text string
	if err := json.Unmarshal(aux, &text); err != nil {
		return err
	}
	report, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	return fields(report, func(n protowire.Number, data []byte) error {
		switch n {
		case 1:
			return t.vertex(data)
		case 3:
			return t.log(data)
		}
		return nil
	})
}

func (t *trace) step(digest string) *vertex {
	if t.steps[digest] == nil {
		t.steps[digest] = &vertex{}
	}
	return t.steps[digest]
}

// vertex reads the start or the failure of a step.
func (t *trace) vertex(data []byte) error {
	var digest, name, fault string
	started := false
	err := fields(data, func(n protowire.Number, data []byte) error {
		switch n {
		case 1:
			digest = string(data)
		case 3:
			name = string(data)
		case 5:
			started = true
		case 7:
			fault = string(data)
		}
		return nil
	})
	v := t.step(digest)
	v.name = name
	if started && !v.started {
		v.started = true
		t.begin(digest)
	}
	if fault != "" && !strings.HasSuffix(fault, "context canceled") {
		t.fail(digest)
	}
	return err
}

// fail prints all output of a step again, so that it ends the output of the build.
func (t *trace) fail(digest string) {
	v := t.step(digest)
	if v.left || t.current != digest {
		t.begin(digest)
		for _, line := range v.lines {
			t.say(line)
		}
	}
	if v.rest != "" {
		t.say(v.rest)
	}
}

// begin prints the header of a step.
func (t *trace) begin(digest string) {
	if t.current != "" && t.current != digest {
		t.step(t.current).left = true
	}
	t.current = digest
	name := t.step(digest).name
	if strings.HasPrefix(name, internal) || name == unpacks {
		return
	}
	if number, command, ok := strings.Cut(strings.TrimPrefix(name, "["), "] "); ok && strings.HasPrefix(name, "[") {
		name = number + " : " + command
	} else {
		name = "- : " + name
	}
	t.say("Step " + name)
}

// log reads the output of a step.
func (t *trace) log(data []byte) error {
	digest, err := field(data, 1)
	message, merr := field(data, 4)
	if err := errors.Join(err, merr); err != nil {
		return err
	}
	v := t.step(string(digest))
	if t.current != string(digest) { // steps run in parallel
		t.begin(string(digest))
	}
	lines := strings.Split(strings.ReplaceAll(v.rest+string(message), "\r", "\n"), "\n")
	for _, line := range lines[:len(lines)-1] {
		v.print(line, t.say)
	}
	v.rest = lines[len(lines)-1]
	if len(v.rest) >= longLine {
		v.print(v.rest, t.say)
		v.rest = ""
	}
	return nil
}

func (v *vertex) print(line string, say func(string)) {
	if len(v.lines) == vertexLines {
		v.lines = v.lines[1:]
	}
	v.lines = append(v.lines, line)
	say(line)
}

// fields calls do for each length-delimited field of a message.
func fields(data []byte, do func(protowire.Number, []byte) error) error {
	for len(data) > 0 {
		n, kind, size := protowire.ConsumeTag(data)
		if size < 0 {
			return protowire.ParseError(size)
		}
		data = data[size:]
		value, size := []byte(nil), 0
		if kind == protowire.BytesType {
			value, size = protowire.ConsumeBytes(data)
		} else {
			size = protowire.ConsumeFieldValue(n, kind, data)
		}
		if size < 0 {
			return protowire.ParseError(size)
		}
		data = data[size:]
		if kind == protowire.BytesType {
			if err := do(n, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// field returns one field of a message.
func field(data []byte, wanted protowire.Number) (found []byte, err error) {
	err = fields(data, func(n protowire.Number, value []byte) error {
		if n == wanted {
			found = value
		}
		return nil
	})
	return found, err
}
