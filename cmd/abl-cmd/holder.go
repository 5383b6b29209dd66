//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"abl/internal/helper"
	"abl/internal/witness"

	"golang.org/x/net/dns/dnsmessage"
)

// hold keeps the container's network namespace open, and serves DNS and the places in it.
func hold(ctx context.Context, s started) error {
	if len(s.args) > 0 {
		return fmt.Errorf("takes no argument %q", s.args[0])
	}
	if s.seal != "" {
		// A kernel without nf_tables is not fatal here: the probe of each call finds the open
		// network, and abl decides.
		if err := sealNetwork(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.as, err)
		}
		if err := become(s.seal); err != nil {
			return err
		}
	}
	signal.Ignore(syscall.SIGCHLD) // the kernel reaps the orphans of a service below this process
	places, err := s.places()
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	var serving sync.WaitGroup
	defer serving.Wait() // until the record is complete
	defer fail(nil)
	var at []string
	for _, p := range places {
		l, err := listen(ctx, p.at)
		if err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
		at = append(at, l.Addr().String())
		serving.Go(func() { fail(p.serve(ctx, l)) })
	}
	err = serveDNS(ctx, cmp.Or(s.listen, "127.0.0.1:53"), func(addr string) {
		fmt.Printf("listening on %s\nready\n", strings.Join(append([]string{addr}, at...), " "))
	})
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, ctx.Err()) {
		err = cause
	}
	return err
}

// serveDNS answers DNS over UDP at addr until ctx ends. It calls ready with the address when it
// listens; the kernel chooses a port of 0. It accepts TCP connections there and closes them: no
// resolver needs TCP for short answers, and a probe can see that this program runs.
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
	defer context.AfterFunc(ctx, func() { udp.Close() })()
	ready(tcp.Addr().String())
	go packets(udp)
	return witness.Serve(ctx, tcp, func(context.Context, net.Conn) {})
}

func packets(conn net.PacketConn) {
	buf := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the error of one packet, such as an unreachable port
		}
		if reply := noSuchName(buf[:n]); reply != nil {
			_, _ = conn.WriteTo(reply, from)
		}
	}
}

// noSuchName returns the response NXDOMAIN to a DNS query, or 127.0.0.1 for the name by which a
// probe recognizes this resolver. It returns nil for a packet that is not a query: two resolvers
// would otherwise answer each other forever.
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
			ID:                 asked.ID,
			Response:           true,
			RecursionDesired:   asked.RecursionDesired,
			RecursionAvailable: true,
			RCode:              dnsmessage.RCodeNameError,
		},
		Questions: []dnsmessage.Question{q},
	}
	if strings.EqualFold(q.Name.String(), helper.HolderName+".") && q.Type == dnsmessage.TypeA &&
		q.Class == dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeSuccess
		head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class} // a TTL of 0
		reply.Answers = []dnsmessage.Resource{{Header: head, Body: &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}}
	}
	packed, _ := reply.Pack() // nil on an error
	return packed
}
