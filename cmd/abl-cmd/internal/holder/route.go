package holder

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// dropDefault takes the default routes of this network namespace away: they lead to an
// address where nobody is, or are closed, and who tries one would wait for minutes.
func dropDefault() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot take the default route away: %w", err)
	}
	defer unix.Close(fd)
	for seq := uint32(1); ; seq++ {
		err := unix.Sendto(fd, deletion(seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
		if err == nil {
			err = acknowledged(fd, seq)
		}
		if errors.Is(err, unix.ESRCH) {
			return nil // there is none any more
		}
		if err != nil {
			return fmt.Errorf("cannot take the default route away: %w", err)
		}
	}
}

// deletion is the message that deletes one default route (linux/rtnetlink.h).
func deletion(seq uint32) []byte {
	body := []byte{unix.AF_INET, 0, 0, 0, unix.RT_TABLE_MAIN, 0, unix.RT_SCOPE_NOWHERE, 0, 0, 0, 0, 0}
	m := order.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	m = order.AppendUint16(order.AppendUint16(m, unix.RTM_DELROUTE), unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	m = order.AppendUint32(order.AppendUint32(m, seq), 0)
	return append(m, body...)
}
