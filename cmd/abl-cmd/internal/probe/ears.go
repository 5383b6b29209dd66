//go:build linux

package probe

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// ear listens to one address that has to stay silent, or to whoever answers
// datagrams: a host may do so from another of its addresses.
type ear struct {
	network, at string
	fd          int
	open        bool // the connection was accepted; datagrams need none
	until       time.Time
}

// ears are all of them. They go by the kernel's own calls, since a try counts
// only from when it is on its way: by the time that listening begins, all are.
type ears struct {
	word     string
	live     []*ear
	asked    map[string]int
	accepted map[string]int
	heard    map[string][]string
}

// listen hears what is said until a time. A connection that was accepted by then
// is listened to for a while from when it was.
func (e *ears) listen(until time.Time) {
	for _, l := range e.live {
		l.until = until
	}
	for len(e.live) > 0 {
		fds := make([]unix.PollFd, len(e.live))
		first := e.live[0].until
		for i, l := range e.live {
			fds[i] = unix.PollFd{Fd: int32(l.fd), Events: unix.POLLIN}
			if !l.open {
				fds[i].Events = unix.POLLOUT
			}
			if l.until.Before(first) {
				first = l.until
			}
		}
		left := max(time.Until(first), 0)
		if _, err := unix.Poll(fds, int((left+time.Millisecond-1)/time.Millisecond)); err != nil && err != unix.EINTR {
			e.heard["tcp"] = append(e.heard["tcp"], "cannot listen: "+err.Error())
			break
		}
		now, still := time.Now(), e.live[:0:0]
		for i, l := range e.live {
			if fds[i].Revents != 0 && !e.turn(l, now) || now.Before(l.until) && fds[i].Revents == 0 {
				still = append(still, l)
				continue
			}
			unix.Close(l.fd)
		}
		e.live = still
	}
}

// turn takes what happened at one ear, and says whether it is done with.
func (e *ears) turn(l *ear, now time.Time) (done bool) {
	if !l.open {
		if code, err := unix.GetsockoptInt(l.fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			return true
		}
		l.open, l.until = true, now.Add(talking)
		e.accepted[l.network]++
		return false
	}
	buf := make([]byte, maxWord)
	n, from, err := unix.Recvfrom(l.fd, buf, 0)
	if err == unix.EAGAIN || err == unix.EINTR || err != nil && l.network == "udp" { // some address refused
		return false
	}
	if err != nil || n == 0 {
		return true
	}
	at := l.at
	if l.network == "udp" {
		at = told(from)
	}
	text := fmt.Sprintf("%s said %q", at, buf[:n])
	if string(buf[:n]) == e.word {
		text = at + " said the word"
	}
	if !slices.Contains(e.heard[l.network], text) {
		e.heard[l.network] = append(e.heard[l.network], text)
	}
	return l.network == "tcp"
}

// told words who sent a datagram.
func told(from unix.Sockaddr) string {
	switch a := from.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port)).String()
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String()
	}
	return "somebody"
}

// said is what came of one network's addresses.
func (e *ears) said(network string) sandbox.Check {
	if e.asked[network] == 0 {
		return sandbox.Check{Name: "the host by " + network, Want: quiet, Got: "unchecked: no address of it is known"}
	}
	check := sandbox.Check{
		Name: "the host by " + network, Want: fmt.Sprintf("%s at %d addresses", quiet, e.asked[network]),
		Got: quiet, OK: len(e.heard[network]) == 0,
	}
	if !check.OK {
		slices.Sort(e.heard[network])
		check.Got = strings.Join(e.heard[network], ", ")
	} else if n := e.accepted[network]; n > 0 {
		check.Got = fmt.Sprintf("%s, though %d of them accept connections", quiet, n)
	}
	return check
}

// newEars tries every address and waits for none.
func newEars(spec *helper.ProbeNet) *ears {
	e := &ears{word: spec.Word, asked: map[string]int{}, accepted: map[string]int{}, heard: map[string][]string{}}
	for _, at := range withNeighbours(spec.TCP, spec.Port) {
		e.connect(at)
	}
	four, six := e.socket("udp", unix.AF_INET), e.socket("udp", unix.AF_INET6)
	for _, at := range withNeighbours(spec.UDP, spec.Asks) {
		e.send(four, six, at)
	}
	return e
}

// withNeighbours adds every address at which the host may be on this network.
func withNeighbours(targets []string, port string) []string {
	targets = slices.Clone(targets)
	if port != "" {
		for _, host := range neighbours() {
			targets = append(targets, net.JoinHostPort(host, port))
		}
	}
	slices.Sort(targets)
	return slices.Compact(targets)
}

// socket opens an ear for datagrams; -1 where there is no such family.
func (e *ears) socket(network string, family int) int {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	e.live = append(e.live, &ear{network: network, fd: fd, open: true})
	return fd
}

// send asks one address. What the kernel refuses to send is silence.
func (e *ears) send(four, six int, at string) {
	e.asked["udp"]++
	family, to, ok := socketAddress(at)
	if !ok {
		e.heard["udp"] = append(e.heard["udp"], at+" is no address")
		return
	}
	fd := four
	if family == unix.AF_INET6 {
		fd = six
	}
	_ = unix.Sendto(fd, []byte(e.word), 0, to)
}

// connect begins a connection. An address that the kernel refuses at once is silent.
func (e *ears) connect(at string) {
	e.asked["tcp"]++
	family, to, ok := socketAddress(at)
	if !ok {
		e.heard["tcp"] = append(e.heard["tcp"], at+" is no address")
		return
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return // there is no such family here
	}
	if err := unix.Connect(fd, to); err != nil && err != unix.EINPROGRESS {
		unix.Close(fd)
		return
	}
	e.live = append(e.live, &ear{network: "tcp", at: at, fd: fd})
}

func socketAddress(at string) (family int, to unix.Sockaddr, ok bool) {
	a, err := netip.ParseAddrPort(at)
	if err != nil {
		return 0, nil, false
	}
	if ip := a.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: ip.As4()}, true
	}
	six := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if i, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
		six.ZoneId = uint32(i.Index)
	}
	return unix.AF_INET6, six, true
}
