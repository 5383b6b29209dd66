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

// ears listen to addresses that have to stay silent, and to whoever answers
// datagrams: a host may do so from another of its addresses. A try counts only from
// when it is on its way: by the time that listening begins, all are. So connections are
// begun by the kernel's own call, which does not wait.
type ears struct {
	tcp, udp ear
	tries    []attempt
	conns    []*net.UDPConn
}

// ear is what came of one protocol's addresses.
type ear struct {
	sync.Mutex
	word            string
	asked, accepted int
	heard           []string
}

// attempt is a connection that was begun.
type attempt struct {
	at   netip.AddrPort
	fd   int
	file *os.File // of fd
}

// newEars tries every address and waits for none.
func newEars(spec *helper.ProbeNet) *ears {
	e := &ears{tcp: ear{word: spec.Word}, udp: ear{word: spec.Word}}
	for _, at := range e.tcp.targets(spec.TCP, spec.Port) {
		e.connect(at)
	}
	from := map[bool]*net.UDPConn{} // by whether it is of IPv4; there may be no such family
	for network, four := range map[string]bool{"udp4": true, "udp6": false} {
		if conn, err := elsewhere(network, spec.Asks); err == nil {
			from[four], e.conns = conn, append(e.conns, conn)
		}
	}
	for _, at := range e.udp.targets(spec.UDP, spec.Asks) {
		if conn := from[at.Addr().Is4()]; conn != nil {
			_, _ = conn.WriteToUDPAddrPort([]byte(spec.Word), at) // what the kernel refuses to send is silence
		}
	}
	return e
}

// elsewhere listens at a port that is not asked: a question to all of a network comes
// back to its sender, who would hear the word from itself.
func elsewhere(network, asked string) (*net.UDPConn, error) {
	conn, err := net.ListenUDP(network, nil)
	if err != nil || !strings.HasSuffix(conn.LocalAddr().String(), ":"+asked) {
		return conn, err
	}
	defer conn.Close() // when another port is taken
	return net.ListenUDP(network, nil)
}

// targets are the addresses that are known, and every one at which the host may be on
// this network.
func (e *ear) targets(known []string, port string) (all []netip.AddrPort) {
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
			e.heard = append(e.heard, text+" is no address")
		}
	}
	return all
}

// connect begins a connection. An address that the kernel refuses at once, or of a
// family that is not here, is silent.
func (e *ears) connect(at netip.AddrPort) {
	family, to := socketAddress(at)
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return
	}
	e.tries = append(e.tries, attempt{at, fd, os.NewFile(uintptr(fd), at.String())})
}

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

// listen hears what is said until a time. A connection that was accepted by then
// is listened to for a while longer.
func (e *ears) listen(until time.Time) {
	if soon := time.Now().Add(least); until.Before(soon) {
		until = soon // a peer may have taken long: what was said meanwhile is there to be read
	}
	var all sync.WaitGroup
	for _, t := range e.tries {
		all.Go(func() { e.tcp.stream(t, until) })
	}
	for _, conn := range e.conns {
		all.Go(func() { e.udp.datagrams(conn, until) })
	}
	all.Wait()
}

func (e *ear) stream(t attempt, until time.Time) {
	defer t.file.Close()
	buf := make([]byte, maxWord)
	if err := t.file.SetReadDeadline(until); err != nil {
		e.hear(t.at, []byte("cannot listen: "+err.Error()))
		return
	}
	n, err := t.file.Read(buf)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		if _, err := unix.Getpeername(t.fd); err != nil {
			return // nobody is there
		}
		_ = t.file.SetReadDeadline(until.Add(talking))
		n, err = t.file.Read(buf)
	}
	if err == nil || err == io.EOF || errors.Is(err, os.ErrDeadlineExceeded) {
		e.Lock()
		e.accepted++
		e.Unlock()
	}
	e.hear(t.at, buf[:max(n, 0)])
}

func (e *ear) datagrams(conn *net.UDPConn, until time.Time) {
	defer conn.Close()
	buf := make([]byte, maxWord)
	err := conn.SetReadDeadline(until)
	for !errors.Is(err, os.ErrDeadlineExceeded) {
		var n int
		var from netip.AddrPort
		if n, from, err = conn.ReadFromUDPAddrPort(buf); err == nil { // else some address refused
			e.hear(from, buf[:n])
		}
	}
}

// hear keeps what was said, once.
func (e *ear) hear(at netip.AddrPort, said []byte) {
	e.Lock()
	defer e.Unlock()
	text := fmt.Sprintf("%s said %q", at, said)
	if string(said) == e.word {
		text = at.String() + " said the word"
	}
	if len(said) > 0 && !slices.Contains(e.heard, text) {
		e.heard = append(e.heard, text)
	}
}

// check returns the result.
func (e *ear) check(name string) sandbox.Check {
	switch want := fmt.Sprintf("%s at %d addresses", quiet, e.asked); {
	case e.asked == 0:
		return sandbox.Check{Name: name, Want: quiet, Got: "unchecked: no address of it is known"}
	case len(e.heard) > 0:
		slices.Sort(e.heard)
		return sandbox.Check{Name: name, Want: want, Got: strings.Join(e.heard, ", ")}
	case e.accepted > 0:
		got := fmt.Sprintf("%s, though %d of them accept connections", quiet, e.accepted)
		return sandbox.Check{Name: name, Want: want, Got: got, OK: true}
	default:
		return sandbox.Check{Name: name, Want: want, Got: quiet, OK: true}
	}
}
