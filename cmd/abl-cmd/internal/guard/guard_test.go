package guard

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

const guarded = "ABL_TEST_GUARDED"

// A test that runs itself again behind the guard: what it refuses cannot be had back.
func TestMain(m *testing.M) {
	if os.Getenv(guarded) != "" {
		behind()
		return
	}
	os.Exit(m.Run())
}

func behind() {
	started := make(chan bool)
	go func() {
		runtime.LockOSThread()
		started <- true
		<-started
		say("another thread's ring", ring())
		started <- true
	}()
	<-started
	say("install", Install())
	started <- true
	<-started
	say("ring", ring())
	_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	say("vsock", err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	say("tcp", err)
	if err == nil {
		l.Close()
	}
	_, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	say("unix", err)
	if len(os.Args) > 1 && os.Args[1] == "child" {
		return
	}
	cmd := exec.Command(os.Args[0], "child")
	out, err := cmd.CombinedOutput()
	fmt.Printf("child: %s%v\n", strings.ReplaceAll(string(out), "\n", "; "), err)
}

func ring() error {
	var params [120]byte
	_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno == 0 {
		return nil
	}
	return errno
}

func say(what string, err error) {
	word := "works"
	if errors.Is(err, unix.EPERM) {
		word = "refused"
	} else if err != nil {
		word = err.Error()
	}
	fmt.Println(what+":", word)
}

func TestGuard(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), guarded+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "install: works\nanother thread's ring: refused\nring: refused\nvsock: refused\ntcp: works\nunix: works\n" +
		"child: another thread's ring: refused; install: works; ring: refused; vsock: refused; tcp: works; unix: works; <nil>\n"
	got := string(out)
	if got != want && got != strings.Replace(want, "another thread's ring: refused; install: works", "install: works; another thread's ring: refused", 1) {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// run is what the kernel would answer to a call, by the filter alone.
func run(t *testing.T, prog []unix.SockFilter, arch, number, first uint32) (errno uint32) {
	t.Helper()
	acc, data := uint32(0), map[uint32]uint32{atNumber: number, atArch: arch, atFirst: first}
	for pc := 0; pc < len(prog); pc++ {
		in := prog[pc]
		yes := false
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			acc = data[in.K]
			continue
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			acc &= in.K
			continue
		case unix.BPF_RET | unix.BPF_K:
			if in.K == unix.SECCOMP_RET_ALLOW {
				return 0
			}
			return in.K & 0xffff
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ:
			yes = acc == in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JGE:
			yes = acc >= in.K
		case unix.BPF_JMP | unix.BPF_K | unix.BPF_JGT:
			yes = acc > in.K
		default:
			t.Fatalf("instruction %d has the code %x", pc, in.Code)
		}
		if yes {
			pc += int(in.Jt)
		} else {
			pc += int(in.Jf)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestProgram(t *testing.T) {
	prog := program(families)
	const eperm, vsock, inet = uint32(unix.EPERM), 40, 2
	type call struct{ arch, number, first, want uint32 }
	cases := []call{
		{unix.AUDIT_ARCH_X86_64, 41, vsock, eperm}, {unix.AUDIT_ARCH_X86_64, 41, inet, 0}, {unix.AUDIT_ARCH_X86_64, 102, 1, 0},
		{unix.AUDIT_ARCH_X86_64, 0x40000000 | 41, vsock, eperm}, {unix.AUDIT_ARCH_X86_64, 0x40000000 | 425, 0, eperm},
		{unix.AUDIT_ARCH_I386, 359, vsock, eperm}, {unix.AUDIT_ARCH_I386, 359, inet, 0}, {unix.AUDIT_ARCH_I386, 102, 1, eperm}, {unix.AUDIT_ARCH_I386, 41, vsock, 0},
		{unix.AUDIT_ARCH_AARCH64, 198, vsock, eperm}, {unix.AUDIT_ARCH_AARCH64, 198, inet, 0},
		{unix.AUDIT_ARCH_ARM, 281, vsock, eperm}, {unix.AUDIT_ARCH_ARM, 281, inet, 0},
		{unix.AUDIT_ARCH_RISCV64, 198, vsock, eperm}, {unix.AUDIT_ARCH_RISCV64, 425, 0, eperm}, {unix.AUDIT_ARCH_RISCV64, 1, 0, 0},
	}
	for _, f := range families {
		for number, want := range map[uint32]uint32{424: 0, 425: eperm, 426: eperm, 427: eperm, 428: 0, 0: 0, 1: 0, 500: 0} {
			cases = append(cases, call{f.audit, number, vsock, want})
		}
	}
	for _, c := range cases {
		if got := run(t, prog, c.arch, c.number, c.first); got != c.want {
			t.Errorf("architecture %x, call %d, argument %d: %d, want %d", c.arch, c.number, c.first, got, c.want)
		}
	}
}
