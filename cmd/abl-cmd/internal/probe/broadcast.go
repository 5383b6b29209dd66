//go:build linux

package probe

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// broadcasts checks that the kernel refuses to send broadcasts, multicasts and datagrams to the host, with
// each of socketOptions. It does not wait for responses: a host without an address on the network would
// receive the datagram and send none. It returns nil if spec has no port for this check.
func broadcasts(spec *helper.ProbeNet) sandbox.Proof {
	port, err := strconv.Atoi(spec.Shout)
	if err != nil {
		return nil
	}
	to := []netip.Addr{netip.AddrFrom4([4]byte{255, 255, 255, 255}), netip.AddrFrom4([4]byte{224, 0, 0, 1})}
	for _, at := range spec.UDP {
		if host, err := netip.ParseAddrPort(at); err == nil && host.Addr().Is4() {
			to = append(to, host.Addr())
		}
	}
	var sent []string
	for _, by := range socketOptions() {
		for _, at := range to {
			if err := sendDatagram(at, port, spec.Word, by); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENETUNREACH) {
				sent = append(sent, fmt.Sprintf("%s%s: %v", at, by.name, err))
			}
		}
	}
	slices.Sort(sent)
	got := strings.Join(slices.Compact(sent), ", ")
	return sandbox.Proof{sandbox.Same("datagrams beyond its networks", refused, cmp.Or(got, refused))}
}

// socketOption makes a socket send through an interface.
type socketOption struct {
	name string
	set  func(fd int) error
}

// socketOptions returns all options that select an interface: none (the routes decide), and for
// each interface its name with and without a gateway, its multicast option, and its addresses.
func socketOptions() []socketOption {
	all := []socketOption{{"", func(int) error { return nil }}}
	links, err := net.Interfaces()
	if err != nil {
		return all
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback != 0 {
			continue
		}
		all = append(all,
			socketOption{" at " + link.Name, func(fd int) error { return unix.BindToDevice(fd, link.Name) }},
			socketOption{" on the wire of " + link.Name, func(fd int) error { // without a gateway
				return errors.Join(unix.BindToDevice(fd, link.Name), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1))
			}},
			socketOption{" in the group of " + link.Name, func(fd int) error {
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)})
			}})
		addrs, _ := link.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				all = append(all, socketOption{" from " + link.Name, func(fd int) error {
					return unix.Bind(fd, &unix.SockaddrInet4{Addr: p.Addr().As4()})
				}})
			}
		}
	}
	return all
}

// errSent is the result of a datagram that the kernel sent.
var errSent = errors.New("sent")

// sendDatagram sends a broadcast. It returns errSent if the kernel sent it.
func sendDatagram(to netip.Addr, port int, word string, by socketOption) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1), by.set(fd)); err != nil {
		return err
	}
	if err := unix.Sendto(fd, []byte(word), 0, &unix.SockaddrInet4{Port: port, Addr: to.As4()}); err != nil {
		return err
	}
	return errSent
}
