package main

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// addRoute requests a default route through a neighbour.
func addRoute() error {
	body := []byte{
		unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, unix.RT_SCOPE_LINK,
		unix.RTN_UNICAST, 0, 0, 0, 0,
	}
	body = append(body, attribute(unix.RTA_OIF, []byte{2, 0, 0, 0})...)
	return netlink(unix.RTM_NEWROUTE, body)
}

// addAddress requests an additional address on the first interface.
func addAddress() error {
	body := []byte{unix.AF_INET, 32, 0, 0, 1, 0, 0, 0}
	return netlink(unix.RTM_NEWADDR, append(body, attribute(unix.IFA_LOCAL, []byte{10, 9, 8, 7})...))
}

func attribute(kind uint16, value []byte) []byte {
	a := binary.LittleEndian.AppendUint16(nil, uint16(4+len(value)))
	return append(binary.LittleEndian.AppendUint16(a, kind), value...)
}

// netlink sends one request and returns the kernel's response.
func netlink(kind uint16, body []byte) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	msg := binary.LittleEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	msg = binary.LittleEndian.AppendUint16(msg, kind)
	msg = binary.LittleEndian.AppendUint16(msg, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	msg = append(msg, make([]byte, 8)...)
	if err := unix.Sendto(fd, append(msg, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		return err
	}
	if code := int32(binary.LittleEndian.Uint32(buf[unix.SizeofNlMsghdr:])); code < 0 {
		return unix.Errno(-code)
	}
	return nil
}
