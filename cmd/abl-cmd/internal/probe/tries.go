//go:build linux

package probe

import (
	"net"
	"net/netip"
	"slices"

	"abl/internal/helper"

	"golang.org/x/sys/unix"
)

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
