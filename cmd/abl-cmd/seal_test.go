//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// In its own network namespace a sealed program can reach only its own networks, with any interface
// options of its socket. The only interface of the namespace plays the one to other machines.
func TestSeal(t *testing.T) {
	runtime.LockOSThread() // not unlocked: the thread ends with this test
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, unix.EPERM) {
		t.Skip("needs the right to make a network namespace; the engine's tests hold it too")
	} else if err != nil {
		t.Fatal(err)
	}
	up(t)
	for _, to := range shouts {
		if err := shout(to, true); err != nil {
			t.Errorf("datagram to %v before the seal: got error %v, want none", to, err)
		}
	}
	if err := keepTo(4711, []netip.Prefix{netip.MustParsePrefix("127.0.0.17/28")}); err != nil {
		t.Fatal(err)
	}
	for _, to := range append(shouts, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 32}) {
		for _, bound := range []bool{false, true} {
			if err := shout(to, bound); !errors.Is(err, unix.EPERM) {
				t.Errorf("datagram to %v, at an interface %v: got error %v, want EPERM", to, bound, err)
			}
		}
	}
	for _, to := range [][4]byte{{127, 0, 0, 16}, {127, 0, 0, 18}, {127, 0, 0, 31}} {
		if err := shout(to, false); err != nil {
			t.Errorf("datagram to %v in its own network: got error %v, want none", to, err)
		}
	}
	if err := sealNetwork(); err != nil {
		t.Errorf("seal with the real interfaces: got error %v, want none", err)
	}
}

var shouts = [][4]byte{{255, 255, 255, 255}, {224, 0, 0, 1}, {239, 255, 255, 250}, {240, 0, 0, 1}}

// up starts the only interface of the new namespace.
func up(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		t.Fatal(err)
	}
}

func shout(to [4]byte, bound bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return err
	}
	if bound {
		if err := unix.BindToDevice(fd, "lo"); err != nil {
			return err
		}
	}
	err = unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: to})
	if errors.Is(err, unix.ENETUNREACH) && !bound {
		return unix.EPERM // no route is as good
	}
	return err
}

func TestBecomeNobodyInParticular(t *testing.T) {
	for _, user := range []string{"", "0:0", "0:1", "1", "1:0", "-1:1", "a:b", "1:1:1"} {
		if err := become(user); err == nil {
			t.Fatalf("become(%q): got no error, want one", user)
		}
	}
}

// becomeMain is a program that continues as another user.
func becomeMain() error {
	runtime.LockOSThread()
	l, err := net.Listen("tcp", "127.0.0.1:0") // threads of the runtime's
	if err == nil {
		defer l.Close()
	}
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable = 1 << unix.CAP_NET_ADMIN // as old engines start programs
	if _, _, no := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); no != 0 {
		return nil // a program with cgo, unlike abl's, cannot make calls for all threads
	}
	if err := unix.Capset(&head, &data[0]); err != nil {
		return err
	}
	if err := become(os.Getenv(becomes)); err != nil {
		return err
	}
	if os.Getuid() != 47113 || os.Getgid() != 47114 || unix.Setuid(0) == nil {
		return errors.New("not another user for good")
	}
	status, err := os.ReadFile("/proc/self/status")
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if !strings.Contains(string(status), "\n"+name+":\t0000000000000000\n") {
			err = errors.Join(err, fmt.Errorf("%s is not empty:\n%s", name, status))
		}
	}
	return err
}

const becomes = "BECOME_TEST_USER"

// It needs a separate process, because the change is permanent.
func TestBecome(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root; the engine's tests hold it too")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), becomes+"=47113:47114")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("process as another user: got error %v, output %s, want no error", err, out)
	}
}
