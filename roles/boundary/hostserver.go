// Package boundary proves that a container has no more network access than its role. It describes
// what a probe inside must find, listens on this machine for packets that must not arrive, and
// proves an engine's networks once. Package roles decides about a call whose boundary is unproven.
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

// HostServer listens on all addresses of this machine and sends a random word to each client. A
// container that receives the word, or whose datagram with the word arrives, reaches this machine.
type HostServer struct {
	Word  string
	Hosts []string // this machine's addresses, without loopback addresses
	Port  string   // TCP
	Asks  string   // UDP

	tcp   net.Listener
	udp   net.PacketConn
	mark  string
	asked atomic.Int64
	heard chan bool // signals that mark arrived
	done  sync.WaitGroup
}

// ListenOnHost starts a server and checks that this machine itself reaches it. Otherwise the
// absence of packets would prove nothing.
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

// Close stops the server. It does nothing if b is nil.
func (b *HostServer) Close() {
	if b == nil {
		return
	}
	b.tcp.Close()
	b.udp.Close()
	b.done.Wait()
}

// Arrived checks that no datagram with the word arrived. The sender may get an error for a datagram
// that arrives all the same. Arrived sends a datagram of its own and waits for it, because the
// server reads datagrams in order.
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
		return sandbox.Same(arrived, "0", "unknown: this machine does not receive its own datagram")
	}
}

const arrived = "datagrams that arrived"

// At returns the addresses of this machine with a port.
func (b *HostServer) At(port string) (all []string) {
	for _, host := range b.Hosts {
		all = append(all, net.JoinHostPort(host, port))
	}
	return all
}

// talk is the time limit of one exchange.
const talk = 2 * time.Second

func (b *HostServer) say() {
	for {
		conn, err := b.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an error of one connection
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
			default: // Arrived has timed out
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
		return fmt.Errorf("this machine receives %q from its own server: %w", word, err)
	}
	return nil
}

// inside is the name of a container's first interface, the zone of link-local addresses.
const inside = "eth0"

// hosts returns this machine's addresses as a container would dial them.
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
