package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestPublic(t *testing.T) {
	tests := map[bool][]string{
		true: {"93.184.216.34", "8.8.8.8", "172.15.0.1", "172.32.0.1", "2606:4700::1111", "::ffff:8.8.8.8",
			"192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1"},
		false: {
			"127.0.0.1", "127.255.0.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
			"169.254.169.254", "100.64.0.1", "100.100.100.200", "192.0.0.170", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
			"168.63.129.16", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1",
			"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::", "::7f00:1",
			"2001::1", "100::1", "64:ff9b::808:808", "2002:808:808::1",
		},
	}
	for want, all := range tests {
		for _, a := range all {
			if got := isPublic(netip.MustParseAddr(a)); got != want {
				t.Errorf("isPublic(%s): got %t, want %t", a, got, want)
			}
		}
	}
	if isPublic(netip.Addr{}) {
		t.Error("isPublic of no address: got true, want false")
	}
}

func TestCheck(t *testing.T) {
	d := Dialer{Not: []netip.Addr{netip.MustParseAddr("5.6.7.8"), netip.MustParseAddr("2000::5"), netip.MustParseAddr("10.0.0.9")}}
	for a, want := range map[string][2]error{ // without and with private
		"93.184.216.34": {nil, nil}, "::ffff:93.184.216.34": {nil, nil}, "2000::6": {nil, nil},
		"10.0.0.1": {errInside, nil}, "172.16.1.1": {errInside, nil}, "192.168.0.1": {errInside, nil}, "100.64.0.1": {errInside, nil},
		"fd00::1": {errInside, nil}, "::ffff:10.0.0.1": {errInside, nil},
		"10.0.0.9": {errInside, errNever}, "5.6.7.8": {errInside, errNever}, "::ffff:5.6.7.8": {errInside, errNever}, "2000::5": {errInside, errNever},
		"169.254.169.254": {errInside, errNever}, "fe80::a9fe:a9fe": {errInside, errNever}, "100.100.100.200": {errInside, errNever},
		"fd00:ec2::254": {errInside, errNever}, "fd20:ce::254": {errInside, errNever}, "168.63.129.16": {errInside, errNever},
		"127.0.0.1": {errInside, errNever}, "::1": {errInside, errNever}, "0.0.0.0": {errInside, errNever}, "64:ff9b::a00:1": {errInside, errNever},
		"224.0.0.1": {errInside, errNever}, "192.0.0.192": {errInside, errNever},
	} {
		got := [2]error{d.check(netip.MustParseAddr(a), false), d.check(netip.MustParseAddr(a), true)}
		if got != want {
			t.Errorf("%s: got %v, want %v", a, got, want)
		}
	}
}

// The gateway opens no connection to an address that is not allowed, also if a name
// has other addresses.
func TestOpen(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	here := Dialer{Also: func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }}
	const notPublic = "its address is not public"
	for _, c := range []struct {
		d        Dialer
		to, want string
	}{
		{here, "localhost:" + port, ""},
		{here, "127.0.0.1:" + port, ""},
		{here, "[::1]:" + port, notPublic},
		{Dialer{}, "localhost:" + port, notPublic},
		{Dialer{}, "[::ffff:127.0.0.1]:" + port, notPublic},
		{here, "127.0.0.1:1", `cannot connect to "127.0.0.1:1": dial tcp 127.0.0.1:1: connect: connection refused`},
		{here, "127.0.0.1", `cannot connect to "127.0.0.1": dial tcp: address 127.0.0.1: missing port in address`},
	} {
		conn, err := c.d.open(t.Context(), c.to, false)
		got := ""
		switch {
		case errors.Is(err, errInside):
			got = notPublic
		case err != nil:
			got = err.Error()
		default:
			conn.Close()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.to, got, c.want)
		}
	}
}

// pair returns both ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

type tunnelEnd struct {
	up, down int64
	err      error
}

// relay starts one and returns its outer ends.
func relay(t *testing.T, idle time.Duration) (client, server net.Conn, end <-chan tunnelEnd) {
	t.Helper()
	client, near := pair(t)
	far, server := pair(t)
	done := make(chan tunnelEnd, 1)
	go func() {
		up, down, err := tunnel(t.Context(), near, far, near, idle)
		done <- tunnelEnd{up, down, err}
	}()
	return client, server, done
}

func TestRelay(t *testing.T) {
	client, server, end := relay(t, time.Minute)
	question, answer := bytes.Repeat([]byte("q"), 1000), bytes.Repeat([]byte("a"), 5000)
	client.Write(question)
	client.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(server) // its end has come through while the other way is open
	if err != nil || !bytes.Equal(got, question) {
		t.Fatalf("data from the client: got %d bytes, error %v, want its %d", len(got), err, len(question))
	}
	server.Write(answer)
	server.Close()
	if got, err = io.ReadAll(client); err != nil || !bytes.Equal(got, answer) {
		t.Fatalf("data from the server: got %d bytes, error %v, want its %d", len(got), err, len(answer))
	}
	if e := <-end; e.up != 1000 || e.down != 5000 || e.err != nil {
		t.Errorf("got %+v, want 1000 up, 5000 down", e)
	}
}

// Nor does it live for ever when one side sends and the other never reads.
func TestSilentRelayEnds(t *testing.T) {
	_, server, end := relay(t, 50*time.Millisecond)
	go io.Copy(server, bytes.NewReader(make([]byte, 64<<20)))
	if e := <-end; !errors.Is(e.err, errTunnelIdle) {
		t.Errorf("got %v, want %v", e.err, errTunnelIdle)
	}
	_, _, end = relay(t, time.Millisecond)
	if e := <-end; !errors.Is(e.err, errTunnelIdle) {
		t.Errorf("got %v, want %v", e.err, errTunnelIdle)
	}
}

// A tunnel with occasional data is never closed.
func TestBusyTunnelLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, near := net.Pipe()
		far, server := net.Pipe()
		end := make(chan error, 1)
		go func() {
			_, _, err := tunnel(t.Context(), near, far, near, time.Minute)
			end <- err
		}()
		for i := range 5 {
			time.Sleep(40 * time.Second)
			go client.Write([]byte("x"))
			if _, err := io.ReadFull(server, make([]byte, 1)); err != nil {
				t.Fatalf("piece %d: got error %v, want it to arrive", i, err)
			}
		}
		client.Close()
		server.Close()
		if err := <-end; err != nil {
			t.Error(err)
		}
	})
}
