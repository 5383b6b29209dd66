//go:build linux

package probe

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"abl/internal/helper"
)

// TestListen checks that the listener sends its word, responds to datagrams and counts those with the
// word.
func TestListen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, ask := io.Pipe()
	says, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Listen(ctx, in, out) }()
	lines := bufio.NewScanner(says)
	var is helper.Listening
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &is) != nil {
		t.Fatalf("got first line %q, want a helper.Listening", lines.Text())
	}
	for _, h := range is.Hosts {
		if h == "127.0.0.1" || h == "::1" || strings.HasPrefix(h, "fe80") && !strings.HasSuffix(h, "%eth0") {
			t.Errorf("got address %s, want no loopback address and a zone for link-local ones", h)
		}
	}
	conn, err := net.Dial("udp", "127.0.0.1:"+is.UDP)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, word := range []string{"wrong", is.Word} {
		if _, err := conn.Write([]byte(word)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, maxWord)
	if n, err := conn.Read(buf); err != nil || string(buf[:n]) != is.Word {
		t.Errorf("got datagram %q, %v, want %q", buf[:n], err, is.Word)
	}
	for _, mark := range []string{"a", "b"} {
		fmt.Fprintln(ask, mark)
		if want := mark + " " + is.Word + " 1"; !lines.Scan() || lines.Text() != want {
			t.Errorf("got count %q, want %q", lines.Text(), want)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("got error %v at the end, want none", err)
	}
	if _, err := net.Dial("tcp", "127.0.0.1:"+is.TCP); err == nil {
		t.Error("connection after the end: got one, want a refusal")
	}
}
