package broker

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"abl/internal/helper"
)

const (
	maxRequests = 64 // in flight; more are turned away
	maxCommands = 8  // running at once; more wait
)

// server is the broker's HTTP side.
type server struct {
	spec   helper.BrokerSpec
	events *events
	log    *appLog
	app    *application    // nil without an app section
	ctx    context.Context // ends with the broker

	requests chan struct{}
	running  chan struct{}
	ran      atomic.Int64 // when a declared command ended last, in Unix nanoseconds
	commands map[string]*declared
}

// unit is a program of the broker's that is meant to stay.
func (s *server) unit(name, command string) *unit {
	ended := func(code int, ran time.Duration) { s.ended(name, code, ran) }
	return &unit{command: command, dir: s.spec.Dir, output: s.log.pipe, exited: ended}
}

// declared is one command with what is known of it.
type declared struct {
	helper.Command
	turn chan struct{} // holds one token: the same command never runs twice at once
	unit *unit         // of a background command
}

func newServer(spec helper.BrokerSpec, ev *events, log *appLog) *server {
	s := &server{
		spec: spec, events: ev, log: log,
		requests: make(chan struct{}, maxRequests),
		running:  make(chan struct{}, maxCommands),
		commands: make(map[string]*declared, len(spec.Commands)),
	}
	for _, c := range spec.Commands {
		s.commands[c.Name] = &declared{Command: c, turn: make(chan struct{}, 1), unit: s.unit(c.Name, c.Command)}
	}
	return s
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /list", s.guard(s.list))
	mux.Handle("POST /run/{name}", s.guard(s.runCommand))
	mux.Handle("POST /restart", s.guard(s.restart))
	return mux
}

// guard lets those through who know the token, and only so many at once.
func (s *server) guard(next http.HandlerFunc) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + s.spec.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			refuse(w, http.StatusUnauthorized, "the token is wrong")
			return
		}
		select {
		case s.requests <- struct{}{}:
			defer func() { <-s.requests }()
			next(w, r)
		default:
			refuse(w, http.StatusServiceUnavailable, "too many commands are waiting")
		}
	})
}

// list names the commands; how they are carried out is not the Verifier's to know.
func (s *server) list(w http.ResponseWriter, _ *http.Request) {
	list := slices.Clone(s.spec.Commands)
	for i := range list {
		list[i].Command = ""
	}
	write(w, http.StatusOK, list)
}

func (s *server) restart(w http.ResponseWriter, r *http.Request) {
	if s.app == nil {
		refuse(w, http.StatusConflict, "there is no app section in the configuration; a background command starts the system, and starts it anew when it is running")
		return
	}
	s.log.note("restart")
	reply := helper.CommandReply{}
	if err := s.app.up(s.ctx, EventRestarted); err != nil {
		reply = helper.CommandReply{Exit: 1, Output: err.Error() + "\n"}
	}
	write(w, http.StatusOK, reply)
}

// unknown answers a name that is not declared with those that are.
func (s *server) unknown(w http.ResponseWriter, name string) {
	names := make([]string, len(s.spec.Commands))
	for i, c := range s.spec.Commands {
		names[i] = c.Name
	}
	refuse(w, http.StatusNotFound, fmt.Sprintf("no command %q is declared; there are: %s", name, strings.Join(names, ", ")))
}

// refuse answers that nothing was run, and why.
func refuse(w http.ResponseWriter, status int, why string) {
	write(w, status, helper.CommandReply{Exit: 2, Error: why})
}

func write(w http.ResponseWriter, status int, reply any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply) // a client that is gone has no use for it
}
