//go:build linux

package holder

import (
	"errors"

	"golang.org/x/sys/unix"
)

// dropDefault takes the default routes of this network namespace away: they lead to an
// address where nobody is, or are closed, and who tries one would wait for minutes.
func dropDefault(k kernel) error {
	for seq := uint32(1); ; seq++ {
		if err := k.ask(deletion(seq), seq); errors.Is(err, unix.ESRCH) {
			return nil // there is none any more
		} else if err != nil {
			return err
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
