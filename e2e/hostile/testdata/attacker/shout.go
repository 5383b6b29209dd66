package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// shouts sends datagrams to each address, in every way in which a socket can choose a route. The
// host checks which ones arrive.
func shouts(at []string) {
	name, _ := os.Hostname()
	text := []byte("a shout from " + name)
	sent := 0
	for _, at := range at {
		to, err := netip.ParseAddrPort(at)
		if err != nil || !to.Addr().Is4() {
			if c, err := net.DialTimeout("udp", at, patience); err == nil {
				c.Write(text)
				c.Close()
			}
			continue
		}
		for _, choose := range exits() {
			if shout(to, text, choose) == nil {
				sent++
			}
		}
	}
	fmt.Println("held:", len(at), "addresses shouted at,", sent, "datagrams taken by the kernel")
}

// exits returns the ways to choose a route: the routing table; a device, with and without its
// gateway; as multicast sender; from its own address; from a foreign address; and with a source
// route in the datagram.
func exits() []func(fd int) error {
	all := []func(int) error{func(int) error { return nil }}
	links, _ := net.Interfaces()
	for _, link := range links {
		all = append(all,
			func(fd int) error { return unix.BindToDevice(fd, link.Name) },
			func(fd int) error { // around every gateway: to the owner of the address on this link
				return errors.Join(unix.BindToDevice(fd, link.Name), unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DONTROUTE, 1))
			},
			func(fd int) error {
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_IF, &unix.IPMreqn{Ifindex: int32(link.Index)})
			},
			func(fd int) error {
				return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{
					Multiaddr: [4]byte{224, 0, 0, 251},
					Ifindex:   int32(link.Index),
				})
			})
	}
	for _, n := range networks() {
		own := n.Addr().As4()
		all = append(all,
			func(fd int) error { return unix.Bind(fd, &unix.SockaddrInet4{Addr: own}) },
			func(fd int) error {
				_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
				return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
			},
			func(fd int) error { // strict: through the broadcast address, to its own address, and on
				route := append([]byte{137, 11, 4, 255, 255, 255, 255}, own[:]...)
				return unix.SetsockoptString(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, string(append(route, 0)))
			})
	}
	return all
}

func shout(to netip.AddrPort, text []byte, choose func(fd int) error) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1)
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MULTICAST_TTL, 64)
	_ = choose(fd) // a refused option leaves the default route
	return unix.Sendto(fd, text, 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}
