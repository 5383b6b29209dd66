//go:build linux

// Package holder keeps a container's network namespace for others to join, and
// answers there, as the resolver that they are given, every name with "does not
// exist": without it a program waits seconds for each name.
package holder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const udpSize = 4096

// Serve answers DNS over UDP at addr, and takes connections there, until ctx ends. It calls ready
// with the address, whose port the kernel has chosen when addr's was 0, once
// both are open.
func Serve(ctx context.Context, addr string, ready func(addr string)) error {
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("cannot answer DNS: %w", err)
	}
	defer tcp.Close()
	udp, err := lc.ListenPacket(ctx, "udp", tcp.Addr().String())
	if err != nil {
		return fmt.Errorf("cannot answer DNS: %w", err)
	}
	defer udp.Close()
	stop := context.AfterFunc(ctx, func() { tcp.Close(); udp.Close() })
	defer stop()
	ready(tcp.Addr().String())

	failed := make(chan error, 2)
	go func() { failed <- packets(udp) }()
	go func() { failed <- conns(tcp) }()
	if err := <-failed; ctx.Err() == nil {
		return fmt.Errorf("cannot go on answering DNS: %w", err)
	}
	return nil
}

func packets(conn net.PacketConn) error {
	buf := make([]byte, udpSize)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			continue // about one packet, as a port that was unreachable
		}
		if reply := Reply(buf[:n]); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// conns ends connections as soon as they are there: no resolver needs one for answers
// as short as these, and by being accepted a probe knows that this program is up.
func conns(l net.Listener) error {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			time.Sleep(10 * time.Millisecond) // out of descriptors, which passes
		default:
			conn.Close()
		}
	}
}
