//go:build linux

package holder

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Seal keeps every program of this network namespace to the machines of its own
// networks. An engine's host that has no address on a bridge takes datagrams from
// there all the same: those to everybody, and those to any other address of its own,
// for it answers who has that. A route could not hold them: a socket that names its
// interface passes routes by. It needs the right to administer the namespace, and
// whoever lacks it cannot undo it.
func Seal() error {
	loop, networks, err := interfaces()
	if err == nil {
		err = keepTo(loop, networks)
	}
	if err != nil {
		return fmt.Errorf("cannot close the network (does the engine's kernel have nf_tables?): %w", err)
	}
	if err := netlink(unix.NETLINK_ROUTE, dropDefault); err != nil {
		return fmt.Errorf("cannot take the default route away: %w", err)
	}
	return nil
}

// keepTo lets nothing leave but on the interface loop and to machines of the networks.
func keepTo(loop int, networks []netip.Prefix) error {
	batch, last := ruleset(loop, networks)
	return netlink(unix.NETLINK_NETFILTER, func(k kernel) error { return k.ask(batch, last) })
}

// kernel is a netlink socket.
type kernel int

// netlink talks with a part of the kernel.
func netlink(family int, talk func(kernel) error) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, family)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const patience = 10 // seconds
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return err
	}
	return talk(kernel(fd))
}

// ask sends messages and reads the kernel's answers up to the one to the last.
func (k kernel) ask(messages []byte, last uint32) error {
	if err := unix.Sendto(int(k), messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	return acknowledged(int(k), last)
}

// interfaces are the number of the loopback's and the networks of the others.
func interfaces() (loop int, networks []netip.Prefix, err error) {
	all, err := net.Interfaces()
	if err != nil {
		return 0, nil, err
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 {
			loop = i.Index
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			return 0, nil, err
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				networks = append(networks, p)
			}
		}
	}
	return loop, networks, nil
}

// acknowledged is the kernel's answer to the last message, or its refusal of one before.
func acknowledged(fd int, last uint32) error {
	buf := make([]byte, 8<<10)
	for until := time.Now().Add(time.Minute); time.Now().Before(until); {
		n, _, err := unix.Recvfrom(fd, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		all, err := syscall.ParseNetlinkMessage(buf[:n])
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.Header.Type != unix.NLMSG_ERROR || len(m.Data) < 4 {
				continue
			}
			if code := int32(order.Uint32(m.Data)); code != 0 {
				return syscall.Errno(-code)
			}
			if m.Header.Seq == last {
				return nil
			}
		}
	}
	return errors.New("no answer")
}

// Become goes on as another user, without a capability, for good. The user is
// given as "uid:gid".
func Become(user string) error {
	u, g, _ := strings.Cut(user, ":")
	uid, uerr := strconv.Atoi(u)
	gid, gerr := strconv.Atoi(g)
	if err := errors.Join(uerr, gerr); err != nil || uid <= 0 || gid <= 0 {
		return fmt.Errorf("user %q: want \"uid:gid\" in numbers, and not root", user)
	}
	// Of package syscall, whose calls hold for all threads. To leave uid 0 with all three
	// is to give every capability up but those that only a program's file could turn on.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)); err != nil {
		return fmt.Errorf("cannot become user %s: %w", user, err)
	}
	head, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none)), 0)
	return powerless()
}

// powerless looks whether no thread has a capability left.
func powerless() error {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) == 0 {
		return errors.Join(err, errors.New("cannot see this program's capabilities"))
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			switch name {
			case "CapInh", "CapPrm", "CapEff", "CapAmb":
				if strings.Trim(value, "0") != "" {
					return fmt.Errorf("internal error: %s is still %s", name, value)
				}
			}
		}
	}
	return nil
}
