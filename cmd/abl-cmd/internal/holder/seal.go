package holder

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Seal keeps every program of this network namespace from datagrams to more than
// one: those to a group, to everybody and to numbers that belong to nobody, all
// of which begin at 224.0.0.0. An engine's host that has no address on a bridge
// takes them all the same. A route could not hold them: a socket that names its
// interface passes routes by. It needs the right to administer the namespace,
// and whoever lacks it cannot undo it.
func Seal() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		return fmt.Errorf("cannot close the network: %w", err)
	}
	defer unix.Close(fd)
	const patience = 10 // seconds
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience}); err != nil {
		return fmt.Errorf("cannot close the network: %w", err)
	}
	batch, last := ruleset()
	if err := unix.Sendto(fd, batch, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("cannot close the network: %w", err)
	}
	if err := acknowledged(fd, last); err != nil {
		return fmt.Errorf("cannot close the network (does the engine's kernel have nf_tables?): %w", err)
	}
	return nil
}

// acknowledged reads the kernel's answers up to the one to the last message.
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
	// Of package syscall, whose calls hold for all threads. To leave uid 0 is to
	// give every capability up.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)); err != nil {
		return fmt.Errorf("cannot become user %s: %w", user, err)
	}
	return powerless()
}

// powerless looks whether no thread has a capability left.
func powerless() error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/self/task/" + task.Name() + "/status")
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
