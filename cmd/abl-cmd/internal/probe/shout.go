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

// shouts sends datagrams to all on the network at once, and to each address that the
// host has anywhere: a host without an address there takes those too, and nothing
// comes back by which one could tell. So not silence counts but that the kernel
// refuses to send, by whatever way a socket asks.
func shouts(spec *helper.ProbeNet) sandbox.Proof {
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
	for _, by := range ways() {
		for _, at := range to {
			if err := shout(at, port, spec.Word, by); !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.ENETUNREACH) {
				sent = append(sent, fmt.Sprintf("%s%s: %v", at, by.name, err))
			}
		}
	}
	slices.Sort(sent)
	got := strings.Join(slices.Compact(sent), ", ")
	return sandbox.Proof{sandbox.Same("datagrams beyond its networks", refused, cmp.Or(got, refused))}
}

// way is how a socket may choose the interface by which it sends.
type way struct {
	name   string
	choose func(fd int) error
}

// ways are by the routes, and for each interface by its name with and without a gateway, as the sender of
// what is for a group, and by an address of it.
func ways() []way {
	all := []way{{"", func(int) error { return nil }}}
	links, err := net.Interfaces()
	if err != nil {
		return all
	}
	for _, link := range links {
		if link.Flags&net.FlagLoopback != 0 {
			continue
		}
		all = append(all,
			way{" at " + link.Name, func(fd int) error { return unix.BindToDevice(fd, link.Name) }},
			way{" on the wire of " + link.Name, func(fd int) error { // past every gateway
				return errors.Join(unix.BindToDevice(fd, link.Name), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1))
			}},
			way{" in the group of " + link.Name, func(fd int) error {
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)})
			}})
		addrs, _ := link.Addrs()
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				all = append(all, way{" from " + link.Name, func(fd int) error {
					return unix.Bind(fd, &unix.SockaddrInet4{Addr: p.Addr().As4()})
				}})
			}
		}
	}
	return all
}

// errSent is what comes of a shout that nobody refused.
var errSent = errors.New("sent")

func shout(to netip.Addr, port int, word string, by way) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1), by.choose(fd)); err != nil {
		return err
	}
	err = unix.Sendto(fd, []byte(word), 0, &unix.SockaddrInet4{Port: port, Addr: to.As4()})
	return cmp.Or(err, errSent)
}
