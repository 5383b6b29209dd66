// Package guard shuts what engines leave open in their own system call filter:
// io_uring, whose requests pass that filter by, and sockets to the machine below
// a virtual one. Newer engines shut both themselves.
package guard

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Install refuses those calls, with EPERM, to this process, all its threads and
// all that it will start, for good. It adds to the filter that is there.
func Install() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot give up new privileges: %w", err)
	}
	filter := program(families)
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case err != 0:
		return fmt.Errorf("cannot filter system calls: %w", err)
	case thread != 0:
		return fmt.Errorf("cannot filter system calls: thread %d has another filter", thread)
	}
	return nil
}

// family is a way to make system calls. A machine knows its own and that of its
// 32-bit programs; a filter for one alone would be passed by through the other.
type family struct {
	audit  uint32 // as the kernel names it to a filter
	socket uint32
	many   uint32 // one call for all of sockets, whose arguments no filter can read; 0 where there is none
	mask   uint32 // bits of a call's number that count
}

var families = []family{
	{unix.AUDIT_ARCH_X86_64, 41, 0, ^uint32(0x40000000)}, // the bit marks x32
	{unix.AUDIT_ARCH_I386, 359, 102, ^uint32(0)},
	{unix.AUDIT_ARCH_AARCH64, 198, 0, ^uint32(0)},
	{unix.AUDIT_ARCH_ARM, 281, 102, ^uint32(0)},
}

// The numbers of io_uring's calls, which are the same in every family.
const (
	ringFirst = 425
	ringLast  = 427
)

// Where a filter finds what it looks at.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16 // low half of the first argument, on a little-endian machine
)

// program is the filter. Each family has a block that ends in an answer; one that
// is not listed gets the last block, with the numbers of new architectures.
func program(families []family) (all []unix.SockFilter) {
	const generic = 198
	for _, f := range families {
		b := block(f)
		all = append(all, load(atArch), jump(unix.BPF_JEQ, f.audit, 0, uint8(len(b))))
		all = append(all, b...)
	}
	return append(all, block(family{socket: generic, mask: ^uint32(0)})...)
}

func block(f family) []unix.SockFilter {
	const allow, refuse = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	many := f.many
	if many == 0 {
		many = ringFirst
	}
	// Offsets count from the following line.
	return []unix.SockFilter{
		load(atNumber),
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: f.mask},
		jump(unix.BPF_JEQ, many, 6, 0),
		jump(unix.BPF_JEQ, f.socket, 2, 0),
		jump(unix.BPF_JGE, ringFirst, 0, 3),
		jump(unix.BPF_JGT, ringLast, 2, 3),
		load(atFirst),
		jump(unix.BPF_JEQ, unix.AF_VSOCK, 1, 0),
		answer(allow),
		answer(refuse),
	}
}

func load(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

func jump(how uint16, k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | how, Jt: yes, Jf: no, K: k}
}

func answer(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
