package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls lists the system calls that the kernel must refuse, by name.
var calls = map[string]func() error{
	"mount":      func() error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"remount":    func() error { return unix.Mount("", "/workspace/specs", "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"umount":     func() error { return unix.Unmount("/workspace/specs", unix.MNT_DETACH) },
	"pivot_root": func() error { return unix.PivotRoot("/tmp", "/tmp") },
	"chroot":     func() error { return unix.Chroot("/tmp") },
	"unshare":    func() error { return unix.Unshare(unix.CLONE_NEWUSER | unix.CLONE_NEWNS) },
	"newnet":     func() error { return unix.Unshare(unix.CLONE_NEWNET) },
	"setns": func() error {
		return openAnd("/proc/1/ns/net", func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWNET) })
	},
	"fsopen":    func() error { return number(unix.SYS_FSOPEN, text("tmpfs"), 0) },
	"open_tree": func() error { return number(unix.SYS_OPEN_TREE, at(unix.AT_FDCWD), text("/"), 1) },

	"mknod_block": func() error { return unix.Mknod("block", unix.S_IFBLK|0o666, int(unix.Mkdev(254, 0))) },
	"mknod_char":  func() error { return unix.Mknod("char", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))) },
	"mknod_tmp":   func() error { return unix.Mknod("/tmp/block", unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0))) },

	"setuid":    func() error { return unix.Setresuid(0, 0, 0) },
	"setgid":    func() error { return unix.Setresgid(0, 0, 0) },
	"setgroups": func() error { return unix.Setgroups([]int{0}) },
	"chown":     func() error { return unix.Chown("attacker", 0, 0) },
	"setxattr":  func() error { return unix.Setxattr("attacker", "security.capability", fileCap, 0) },
	"immutable": immutable,
	"nice":      func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -20) },
	"rlimit": func() error {
		return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
	},

	"raw_icmp":   func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
	"raw_tcp":    func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW) },
	"packet":     func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0x0300) },
	"packet_arp": func() error { return socket(unix.AF_PACKET, unix.SOCK_DGRAM, 0x0806) },
	"vsock":      func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
	"tun":        func() error { return openAnd("/dev/net/tun", func(int) error { return nil }) },
	"route":      addRoute,
	"address":    addAddress,

	"add_key":     func() error { return number(unix.SYS_ADD_KEY, text("user"), text("k"), text("v"), 1, at(-3)) },
	"request_key": func() error { return number(unix.SYS_REQUEST_KEY, text("user"), text("k"), 0, at(-3)) },
	"keyctl":      func() error { _, err := unix.KeyctlGetKeyringID(-3, true); return err },

	"bpf":             func() error { return number(unix.SYS_BPF, 0, 0, 0) },
	"perf_event_open": func() error { return number(unix.SYS_PERF_EVENT_OPEN, 0, 0, at(-1), at(-1), 0) },
	"kexec_load":      func() error { return number(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0) },
	"init_module":     func() error { return unix.InitModule(nil, "") },
	"finit_module": func() error {
		return openAnd("/proc/self/exe", func(fd int) error { return unix.FinitModule(fd, "", 0) })
	},
	"delete_module": func() error { return unix.DeleteModule("x", 0) },
	"userfaultfd":   func() error { return number(unix.SYS_USERFAULTFD, 0) },
	"io_uring_setup": func() error {
		var p [120]byte
		return number(unix.SYS_IO_URING_SETUP, 1,
			uintptr(unsafe.Pointer(&p)))
	},
	"io_setup":          func() error { var context uintptr; return number(unix.SYS_IO_SETUP, 1, structure(&context)) },
	"fanotify_init":     func() error { return number(unix.SYS_FANOTIFY_INIT, 0, 0) },
	"lookup_dcookie":    func() error { return number(unix.SYS_LOOKUP_DCOOKIE, 0, 0, 0) },
	"open_by_handle":    shocker,
	"process_vm_readv":  func() error { return number(unix.SYS_PROCESS_VM_READV, 1, 0, 0, 0, 0, 0) },
	"process_vm_writev": func() error { return number(unix.SYS_PROCESS_VM_WRITEV, 1, 0, 0, 0, 0, 0) },
	"process_madvise":   func() error { return number(unix.SYS_PROCESS_MADVISE, at(-1), 0, 0, 0, 0) },
	"ptrace":            func() error { return number(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(os.Getppid()), 0, 0) },
	"kcmp": func() error {
		return number(unix.SYS_KCMP, uintptr(os.Getppid()), uintptr(os.Getpid()),
			0, 0, 0)
	},
	"pidfd_getfd": func() error { return number(unix.SYS_PIDFD_GETFD, at(-1), 0, 0) },
	// EINVAL if it is permitted.
	"clone_newuser": func() error { return number(unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_FS, 0, 0, 0, 0) },

	"sethostname":   func() error { return unix.Sethostname([]byte("evil")) },
	"clock_settime": func() error { return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: 1}) },
	"reboot":        func() error { return unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF) },
	"swapon":        func() error { return number(unix.SYS_SWAPON, text("/tmp/x"), 0) },
	"acct":          func() error { return unix.Acct("/tmp/x") },
	"syslog":        func() error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 64)); return err },
	"quotactl":      func() error { return number(unix.SYS_QUOTACTL, 0x800002, text("/dev/vda"), 0, 0) },
}

// fileCap is the attribute of a file with cap_setuid, effective and permitted.
var fileCap = []byte{1, 0, 0, 2, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

func number(trap uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, err := unix.Syscall6(trap, a[0], a[1], a[2], a[3], a[4], a[5]); err != 0 {
		return err
	}
	return nil
}

// kept references the memory passed to the kernel, so that it is not collected.
var kept [][]byte

func text(s string) uintptr {
	b := append([]byte(s), 0)
	kept = append(kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}

func at(n int) uintptr { return uintptr(n) }

func openAnd(path string, do func(fd int) error) error {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err == unix.ENOENT || err == unix.ENXIO {
		return unix.EACCES // a missing file cannot be used
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

func socket(family, kind, protocol int) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// shocker opens the host's root by a guessed handle, like an old exploit does: the inode of / is
// 2 on most file systems.
func shocker() error {
	fd, err := unix.Open("/abl/in", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	h := unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0})
	_, err = unix.OpenByHandleAt(fd, h, unix.O_RDONLY)
	return err
}

func immutable() error {
	fd, err := unix.Open("attacker", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, 0x10)
}
