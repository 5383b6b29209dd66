//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"abl/internal/helper"

	"golang.org/x/net/dns/dnsmessage"
)

const udpSize = 4096

// serveDNS answers DNS over UDP at addr, and takes connections there, until ctx ends. It calls ready
// with the address, whose port the kernel has chosen when addr's was 0, once
// both are open.
func serveDNS(ctx context.Context, addr string, ready func(addr string)) error {
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
		if reply := noSuchName(buf[:n]); reply != nil {
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

// noSuchName answers the first question of a DNS query with just that, but for the
// name by which a probe knows this resolver. It returns nil for a packet that is to
// stay unanswered: one that is no query, or an answer itself, which two responders
// would throw at each other for ever.
func noSuchName(query []byte) []byte {
	var p dnsmessage.Parser
	asked, err := p.Start(query)
	if err != nil || asked.Response || asked.OpCode != 0 {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: asked.ID, Response: true, RecursionDesired: asked.RecursionDesired, RecursionAvailable: true, RCode: dnsmessage.RCodeNameError,
		},
		Questions: []dnsmessage.Question{q},
	}
	if strings.EqualFold(q.Name.String(), helper.HolderName+".") && q.Type == dnsmessage.TypeA && q.Class == dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeSuccess
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class} // for no time at all
		reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	packed, err := reply.Pack()
	if err != nil {
		return nil
	}
	return packed
}
