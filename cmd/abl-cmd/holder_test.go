//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
)

// query is a resolver's query for the address of a.example.
var query = []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01")

func TestNoSuchName(t *testing.T) {
	edit := func(at int, b byte) []byte {
		q := bytes.Clone(query)
		q[at] = b
		return q
	}
	long := append(bytes.Clone(query[:12]), strings.Repeat("\x3f"+strings.Repeat("x", 63), 4)+"\x00\x00\x01\x00\x01"...)
	mine := []byte("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06Holder\x03abl\x07invalid\x00\x00\x01\x00\x01")
	tests := []struct {
		name  string
		query []byte
		want  string
	}{
		{"name", query, "\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"},
		{"no-recursion", edit(2, 0), "\x12\x34\x80\x83\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"},
		{"with-what-follows", append(bytes.Clone(query), "OPT"...), "\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"},
		{"other-opcode", edit(2, 0x28), ""},
		{"two-questions", edit(5, 2), "\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"},
		{"compressed-name", edit(12, 0xc0), ""},
		{"cut", query[:20], ""},
		{"cut-in-its-type", query[:len(query)-1], ""},
		{"name-too-long", long, ""},
		{"own-name", mine, "\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x06Holder\x03abl\x07invalid\x00\x00\x01\x00\x01" +
			"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\x7f\x00\x00\x01"},
		{"own-name-another-kind", append(bytes.Clone(mine[:len(mine)-3]), 28, 0, 1), "\x12\x34\x81\x83\x00\x01\x00\x00\x00\x00\x00\x00\x06Holder\x03abl\x07invalid\x00\x00\x1c\x00\x01"},
		{"answer", edit(2, 0x81), ""},
		{"too-short", query[:11], ""},
		{"nothing", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(noSuchName(tt.query)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// A query of the maximum length for TCP, with many questions, is as cheap as any other.
func TestManyQuestions(t *testing.T) {
	long := append([]byte("\x12\x34\x01\x00\x33\x2e\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte("\x00\x00\x01\x00\x01"), 0x332e)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	out := noSuchName(long)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 || len(out) != 17 || out[3] != 0x83 {
		t.Errorf("response: got %x and %d allocated bytes, want NXDOMAIN in 17 bytes and at most %d", out, used, 64<<10)
	}
}

// FuzzNoSuchName checks that no packet crashes the responder, that a response gets no response, and
// that a response belongs to its query and has a bounded length.
func FuzzNoSuchName(f *testing.F) {
	f.Add(query)
	f.Add(query[:15])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{63}, 600))
	f.Add([]byte("\x3f\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0a0123456789\xc0\x00\x00\x01\x00\x01" + strings.Repeat("x", 35) + "\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		out := noSuchName(in)
		if out == nil {
			return
		}
		if len(out) < 12 || len(out) > 12+255+4+16 || !bytes.Equal(out[:2], in[:2]) {
			t.Fatalf("response to %x: got %x, want the same id in 12 to %d bytes", in, out, 12+255+4+16)
		}
		if got := noSuchName(out); got != nil {
			t.Fatalf("response to the response %x: got %x, want none", out, got)
		}
	})
}

func TestServeDNS(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done, at := make(chan error, 1), make(chan string, 1)
	go func() { done <- serveDNS(ctx, "127.0.0.1:0", func(addr string) { at <- addr }) }()
	addr := <-at
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", addr)
	}}
	_, err := r.LookupHost(t.Context(), "llm.example.")
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		t.Errorf("got %v, want that there is no such host", err)
	}
	for range 3 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("TCP connection: got %d bytes, error %v, want none and EOF", n, err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("end of the server: got error %v, want none", err)
	}
	if err := serveDNS(t.Context(), "not an address", func(string) {}); err == nil {
		t.Error("server at an invalid address: got no error, want one")
	}
}
