//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// silence checks that the host does not respond. Datagrams may come from any address, because a
// host can respond from another of its addresses. All requests are sent before listening begins, so
// that each one has the full waiting time. Connections use the kernel's non-blocking call.
type silence struct {
	tcp, udp responses
	dials    []dial
	conns    []*net.UDPConn
}

// responses are the responses over one protocol.
type responses struct {
	sync.Mutex
	word            string
	asked, accepted int
	received        []string
}

// dial is a connection that was started.
type dial struct {
	at   netip.AddrPort
	fd   int
	file *os.File // of fd
}

// newSilence sends a request to every address and does not wait.
func newSilence(spec *helper.ProbeNet) *silence {
	e := &silence{tcp: responses{word: spec.Word}, udp: responses{word: spec.Word}}
	for _, at := range e.tcp.targets(spec.TCP, spec.Port) {
		e.connect(at)
	}
	from := map[bool]*net.UDPConn{} // true for IPv4; a family may be missing
	for network, four := range map[string]bool{"udp4": true, "udp6": false} {
		if conn, err := listenUDP(network, spec.Asks); err == nil {
			from[four], e.conns = conn, append(e.conns, conn)
		}
	}
	for _, at := range e.udp.targets(spec.UDP, spec.Asks) {
		if conn := from[at.Addr().Is4()]; conn != nil {
			_, _ = conn.WriteToUDPAddrPort([]byte(spec.Word), at) // a refused datagram counts as silence
		}
	}
	return e
}

// listenUDP listens on a port other than the port asked. On that port it would receive its own
// broadcasts.
func listenUDP(network, asked string) (*net.UDPConn, error) {
	conn, err := net.ListenUDP(network, nil)
	if err != nil || !strings.HasSuffix(conn.LocalAddr().String(), ":"+asked) {
		return conn, err
	}
	defer conn.Close() // after the next call, which gets another port
	return net.ListenUDP(network, nil)
}

// targets returns the known addresses, and all addresses that the host may have on this network.
func (e *responses) targets(known []string, port string) (all []netip.AddrPort) {
	known = slices.Clone(known)
	if port != "" {
		for _, host := range neighbours() {
			known = append(known, net.JoinHostPort(host, port))
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	e.asked = len(known)
	for _, text := range known {
		if at, err := netip.ParseAddrPort(text); err == nil {
			all = append(all, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
		} else {
			e.received = append(e.received, text+" is not an address")
		}
	}
	return all
}

// connect starts a connection. An address counts as silent if the kernel refuses it immediately or
// lacks its family.
func (e *silence) connect(at netip.AddrPort) {
	family, to := socketAddress(at)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return
	}
	e.dials = append(e.dials, dial{at, fd, os.NewFile(uintptr(fd), at.String())})
}

// socketAddress returns an address in the form of the system calls.
func socketAddress(at netip.AddrPort) (family int, to unix.Sockaddr) {
	if at.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	}
	six := &unix.SockaddrInet6{Port: int(at.Port()), Addr: at.Addr().As16()}
	if i, err := net.InterfaceByName(at.Addr().Zone()); err == nil {
		six.ZoneId = uint32(i.Index)
	}
	return unix.AF_INET6, six
}

// listen reads responses until a time. It reads accepted connections a while longer.
func (e *silence) listen(until time.Time) {
	if soon := time.Now().Add(least); until.Before(soon) {
		until = soon // if a peer was slow, the responses since then are in the buffers
	}
	var all sync.WaitGroup
	for _, t := range e.dials {
		all.Go(func() { e.tcp.stream(t, until) })
	}
	for _, conn := range e.conns {
		all.Go(func() { e.udp.datagrams(conn, until) })
	}
	all.Wait()
}

// stream records the response on a TCP connection until a time, or that it was refused.
func (e *responses) stream(t dial, until time.Time) {
	defer t.file.Close()
	buf := make([]byte, maxWord)
	if err := t.file.SetReadDeadline(until); err != nil {
		e.add(t.at, []byte("cannot listen: "+err.Error()))
		return
	}
	n, err := t.file.Read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if _, err := unix.Getpeername(t.fd); err != nil {
			return // not connected
		}
		_ = t.file.SetReadDeadline(until.Add(talking))
		n, err = t.file.Read(buf)
	}
	if err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
		e.Lock()
		e.accepted++
		e.Unlock()
	}
	e.add(t.at, buf[:max(n, 0)])
}

// datagrams records the datagrams that arrive until a time.
func (e *responses) datagrams(conn *net.UDPConn, until time.Time) {
	defer conn.Close()
	buf := make([]byte, maxWord)
	err := conn.SetReadDeadline(until)
	for !errors.Is(err, os.ErrDeadlineExceeded) {
		var n int
		var from netip.AddrPort
		if n, from, err = conn.ReadFromUDPAddrPort(buf); err == nil { // an error means that an address refused
			e.add(from, buf[:n])
		}
	}
}

// add records a response once.
func (e *responses) add(at netip.AddrPort, said []byte) {
	e.Lock()
	defer e.Unlock()
	text := fmt.Sprintf("%s said %q", at, said)
	if string(said) == e.word {
		text = at.String() + " said the word"
	}
	if len(said) > 0 && !slices.Contains(e.received, text) {
		e.received = append(e.received, text)
	}
}

// check returns the result.
func (e *responses) check(name string) sandbox.Check {
	switch want := fmt.Sprintf("%s at %d addresses", quiet, e.asked); {
	case e.asked == 0:
		return sandbox.Check{Name: name, Want: quiet, Got: "unchecked: its addresses are unknown"}
	case len(e.received) > 0:
		slices.Sort(e.received)
		return sandbox.Check{Name: name, Want: want, Got: strings.Join(e.received, ", ")}
	case e.accepted > 0:
		got := fmt.Sprintf("%s, though %d of them accept connections", quiet, e.accepted)
		return sandbox.Check{Name: name, Want: want, Got: got, OK: true}
	default:
		return sandbox.Check{Name: name, Want: want, Got: quiet, OK: true}
	}
}
