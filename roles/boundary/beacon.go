// Package boundary proves from both sides that a box has no more reach than its
// role: it knows what a probe inside has to find, listens on this machine for
// what must not arrive, and proves an engine's kind of network once.
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
)

// Beacon is a server on all addresses of this machine that says a random word to
// everybody. A box that hears the word, or whose datagram with the word arrives,
// reaches this machine.
type Beacon struct {
	Word  string
	Hosts []string // this machine's addresses, without the loopback's
	Port  string   // for connections
	Asks  string   // for datagrams

	tcp   net.Listener
	udp   net.PacketConn
	asked atomic.Int64
	done  sync.WaitGroup
}

// Light starts a beacon, and hears it from this machine itself: one that says
// nothing would prove nothing.
func Light(ctx context.Context) (b *Beacon, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot listen for what must not arrive: %w", err)
		}
	}()
	b = &Beacon{Word: rand.Text()}
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
	b.Port, b.Asks = port(b.tcp.Addr()), port(b.udp.LocalAddr())
	b.done.Go(b.say)
	b.done.Go(b.answer)
	if err := b.hear(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Close ends it.
func (b *Beacon) Close() {
	b.tcp.Close()
	b.udp.Close()
	b.done.Wait()
}

// Asked is how many datagrams with the word arrived.
func (b *Beacon) Asked() int64 { return b.asked.Load() }

// At are the addresses of a port of this machine.
func (b *Beacon) At(port string) (all []string) {
	for _, host := range b.Hosts {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}

// talk bounds one answer.
const talk = 2 * time.Second

func (b *Beacon) say() {
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

func (b *Beacon) answer() {
	buf := make([]byte, 512)
	for {
		n, from, err := b.udp.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || string(buf[:n]) != b.Word {
			continue
		}
		b.asked.Add(1)
		_, _ = b.udp.WriteTo([]byte(b.Word), from)
	}
}

func (b *Beacon) hear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, talk)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("localhost", b.Port))
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

func port(a net.Addr) string {
	switch a := a.(type) {
	case *net.TCPAddr:
		return strconv.Itoa(a.Port)
	case *net.UDPAddr:
		return strconv.Itoa(a.Port)
	}
	return ""
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
