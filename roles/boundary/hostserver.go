// Package boundary proves from both sides that a box has no more reach than its
// role: it knows what a probe inside has to find, listens on this machine for
// what must not arrive, and proves an engine's kind of network once. What becomes of a
// call whose boundary is not proven is decided elsewhere.
package boundary

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"abl/internal/sandbox"
)

// HostServer is a server on all addresses of this machine that says a random word to
// everybody. A box that hears the word, or whose datagram with the word arrives,
// reaches this machine.
type HostServer struct {
	Word  string
	Hosts []string // this machine's addresses, without the loopback's
	Port  string   // for connections
	Asks  string   // for datagrams

	tcp   net.Listener
	udp   net.PacketConn
	mark  string
	asked atomic.Int64
	heard chan bool // the mark
	done  sync.WaitGroup
}

// ListenOnHost starts a server, and hears it from this machine itself: one that says
// nothing would prove nothing.
func ListenOnHost(ctx context.Context) (b *HostServer, err error) {
	b = &HostServer{Word: rand.Text(), mark: rand.Text(), heard: make(chan bool, 1)}
	if b.Hosts, err = hosts(); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	if b.tcp, err = lc.Listen(ctx, "tcp", ":0"); err != nil {
		return nil, err
	}
	if b.udp, err = lc.ListenPacket(ctx, "udp", ":0"); err != nil {
		b.tcp.Close()
		return nil, err
	}
	_, b.Port, _ = net.SplitHostPort(b.tcp.Addr().String())
	_, b.Asks, _ = net.SplitHostPort(b.udp.LocalAddr().String())
	b.done.Go(b.say)
	b.done.Go(b.answer)
	if err := b.hear(); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close ends it, where there is one.
func (b *HostServer) Close() {
	if b == nil {
		return
	}
	b.tcp.Close()
	b.udp.Close()
	b.done.Wait()
}

// Arrived checks that no datagram with the word did. A box may be told that it may
// not send, and what it sent arrives all the same. They are read in the order in which
// they came, so one of this machine's own is waited for.
func (b *HostServer) Arrived() sandbox.Check {
	conn, err := net.Dial("udp", net.JoinHostPort("127.0.0.1", b.Asks))
	if err == nil {
		defer conn.Close()
		_, err = io.WriteString(conn, b.mark)
	}
	if err != nil {
		return sandbox.Same(arrived, "0", err.Error())
	}
	select {
	case <-b.heard:
		return sandbox.Same(arrived, "0", strconv.FormatInt(b.asked.Load(), 10))
	case <-time.After(talk):
		return sandbox.Same(arrived, "0", "unknown: this machine does not hear its own")
	}
}

const arrived = "datagrams that arrived"

// At are the addresses of a port of this machine.
func (b *HostServer) At(port string) (all []string) {
	for _, host := range b.Hosts {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}

// talk bounds one answer.
const talk = 2 * time.Second

func (b *HostServer) say() {
	for {
		conn, err := b.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one connection
		}
		b.done.Go(func() {
			defer conn.Close()
			if conn.SetDeadline(time.Now().Add(talk)) == nil {
				_, _ = io.WriteString(conn, b.Word)
			}
		})
	}
}

func (b *HostServer) answer() {
	buf := make([]byte, 512)
	for {
		n, from, err := b.udp.ReadFrom(buf)
		switch said := string(buf[:n]); {
		case errors.Is(err, net.ErrClosed):
			return
		case err == nil && said == b.Word:
			b.asked.Add(1)
			_, _ = b.udp.WriteTo([]byte(b.Word), from)
		case err == nil && said == b.mark:
			select {
			case b.heard <- true:
			default: // nobody waits any more
			}
		}
	}
}

func (b *HostServer) hear() error {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("localhost", b.Port), talk)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(talk)); err != nil {
		return err
	}
	if word, err := io.ReadAll(io.LimitReader(conn, 100)); err != nil || string(word) != b.Word {
		return fmt.Errorf("this machine hears %q of itself: %w", word, err)
	}
	return nil
}

// inside is the name of a box's first interface, by which it would look for an
// address that belongs to one link only.
const inside = "eth0"

// hosts are this machine's addresses as a box would dial them.
func hosts() (all []string, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLoopback() {
			continue
		}
		at := p.Addr().Unmap()
		if at.IsLinkLocalUnicast() && at.Is6() {
			at = at.WithZone(inside)
		}
		all = append(all, at.String())
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
