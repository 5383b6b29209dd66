package docker

import (
	"encoding/json"
	"errors"
	"net"
	"strings"
	"testing"

	"abl/internal/sandbox"
)

func TestFeedLeavesStandardInputOpen(t *testing.T) {
	l := newLab(t)
	desired := l.container("a", "echo")
	desired.Stdin = true
	name := l.start(desired)
	const secret = "word-that-no-inspect-shows"
	for _, line := range []string{secret, "second", "bye"} {
		l.must(l.Feed(t.Context(), name, []byte(line+"\n")))
		l.awaitLog(name, line)
	}
	if _, err := l.Wait(t.Context(), name); err != nil {
		t.Error(err)
	}
	if err := l.Feed(t.Context(), name, []byte("late\n")); err == nil || !strings.Contains(err.Error(), "not running") {
		t.Errorf("feed of an ended container: got error %v, want one with %q", err, "not running")
	}
	all, err := l.api.ContainerInspect(t.Context(), name)
	l.must(err)
	if text, _ := json.Marshal(all); strings.Contains(string(text), secret) {
		t.Errorf("inspect: got %s, want it without the written text", text)
	}
	if logs, err := l.Logs(t.Context(), name, 1<<20); err != nil || strings.Contains(string(logs), "late") {
		t.Errorf("log: got %q, error %v, want it without the late line", logs, err)
	}
}

func TestFeedIsRefused(t *testing.T) {
	l := newLab(t)
	if err := l.Feed(t.Context(), "abl-none", nil); !errors.Is(err, sandbox.ErrNotFound) {
		t.Errorf("feed of a missing container: got error %v, want %v", err, sandbox.ErrNotFound)
	}
}

// A server on this machine listens on the address.
func TestHostAddress(t *testing.T) {
	l := newLab(t)
	inner, outer := l.network("inner", false), l.network("outer", true)
	nets, err := l.Subnets(t.Context(), []string{inner, "abl-none", outer})
	l.must(err)
	if len(nets) != 2 || nets[0].Host.IsValid() || !nets[1].Host.IsValid() {
		t.Fatalf("got %v, want an isolated network and one with an address of this machine", nets)
	}
	addr := nets[1].Host
	port, word := l.hostService()
	desired := l.container("a", "dial", net.JoinHostPort(addr.String(), port))
	desired.Reach.Endpoints = []sandbox.Endpoint{{Network: outer}}
	if log := l.good(desired); !strings.Contains(log, word) {
		t.Errorf("reply of this machine at %v: got %q, want %q in it", addr, log, word)
	}
}
