package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// Group B: what a role sees, and escapes from its container.
func TestContainerHolds(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	s.playAttacks(t, kernelAttacks())
}

func TestMountsHold(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	s.playAttacks(t, mountAttacks())
}

// kernelAttacks are attacks through system calls and devices.
func kernelAttacks() []attack {
	calls := func(id, what, names string) attack {
		return attack{id: id, by: "both", what: what, script: "$A " + names}
	}
	return []attack{
		calls("B05", "mount, unmount, change the root", "mount,umount,remount,pivot_root,chroot,fsopen,open_tree"),
		calls("B05-ns", "new namespaces, or those of process 1", "unshare,newnet,setns"),
		{id: "B05-sh", by: "both", what: "the same by programs"},
		{id: "B06", by: "both", what: "settings of the kernel"},
		{id: "B06-read", by: "both", what: "memory and secrets of the kernel"},
		calls("B09", "device nodes", "mknod_block,mknod_char,mknod_tmp"),
		{id: "B09-disk", by: "both", what: "the host's disks"},
		calls("B18", "asynchronous calls around the seccomp filter", "io_uring_setup"),
		calls("B18-vsock", "a vsock to the hypervisor", "vsock"),
		calls("B18-keys", "the kernel's key rings", "add_key,request_key,keyctl"),
		calls("B18-bpf", "BPF programs and perf events",
			"bpf,perf_event_open,userfaultfd,fanotify_init,lookup_dcookie"),
		calls("B18-module", "another kernel, or modules of this one", "kexec_load,init_module,finit_module,delete_module"),
		calls("B18-host", "the host's name, clock, swap, log and power",
			"sethostname,clock_settime,swapon,acct,syslog,quotactl,reboot"),
		calls("B18-handle", "the host's root by a guessed handle", "open_by_handle"),
		calls("B18-vm", "other processes by the kernel's calls",
			"process_vm_readv,process_vm_writev,process_madvise,ptrace,kcmp,pidfd_getfd"),
		{id: "B18-steer", by: "both", what: "the weight, processors and limits of process 1", script: "$A steers"},
		{id: "B18-own", by: "both", what: "process attributes that a program may change"},
		calls("B18-aio", "asynchronous I/O contexts, a scarce resource of the machine", "io_setup"),
		calls("B18-clone", "a process with its own namespaces", "clone_newuser"),
		{id: "B18-mem", by: "both", what: "the memory of the watching process"},
		calls("B18-id", "another user", "setuid,setgid,setgroups,chown,setxattr,immutable,nice"),
		calls("E06", "raw sockets, false ARP, tunnels", "raw_icmp,raw_tcp,packet,packet_arp,tun"),
		calls("E07", "another route or address", "route,address"),
		{id: "B18-suid", by: "both", what: "setuid programs of the image"},
	}
}

// mountAttacks are attacks on files that are not the role's.
func mountAttacks() []attack {
	return []attack{
		{id: "B03", by: "both", what: "files of the project and of the user"},
		{id: "F14", by: "verifier", what: "the source, by path and by URL"},
		{id: "F14-tests", by: "builder", what: "the tests, by path"},
		{id: "B04", by: "both", what: "the engine's socket, and other sockets"},
		{id: "B12", by: "both", what: "the specs"},
		{id: "F09", by: "both", what: "prompts and configuration of both roles"},
		{id: "B03-root", by: "both", what: "programs and settings of the container"},
		{id: "B16", by: "both", what: "from a mount to its neighbours"},
		{id: "B17", by: "both", what: "control groups"},
		{id: "B19", by: "both", what: "other processes"},
		{id: "B19-kill", by: "both", what: "killing everything within reach"},
		{
			id:     "B19-signals",
			by:     "both",
			what:   "process 1, by every signal at which a program of its kind ends",
			script: "$A signals",
		},
	}
}

// Group B, between calls: nothing of one call exists in the next.
func TestCallsShareNothing(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	leave := lab.File(t, "leaves-files.sh")
	look := []attack{{id: "B20", by: "both", what: "remains of an earlier call in /tmp, HOME, shared memory and " +
		"processes"}}
	first := verifies(run(leave), write("failed_specs.md",
		"SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n"))
	first.Iteration = 1
	build := builds(run(leave))
	build.Iteration = 1
	s.script(build, first, builds(steps(t, "builder", look)...), verifies(steps(t, "verifier", look)...))
	s.play(0)
	for _, key := range []string{"p1-build-2.1", "p1-verify-2.1"} {
		role := strings.Split(key, "-")[1]
		t.Run("B20-"+role, func(t *testing.T) { checkHeld(t, look[0], role, s.Printed(key)) })
	}
}

// Group B, afterwards: files that must not stay in a workspace.
func TestSetuidBitsAreCleared(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	s.playAttacks(t, []attack{
		{
			id:   "B07",
			by:   "both",
			what: "programs with setuid and setgid",
			after: func(t *testing.T, s *scene, r lab.Result) {
				wants(t, "the report", r.Stdout, "setuid")
			},
		},
		{id: "B07-ignored", by: "both", what: "the same in ignored files"},
		{id: "B07-socket", by: "both", what: "sockets", after: wantRemoved("sock", "sub/sock2")},
		{id: "B10", by: "both", what: "permissions that lock abl out, or let everybody in"},
	})
	if _, err := os.Lstat(filepath.Join(s.Dir, "src/s")); err != nil {
		t.Errorf("src/s: got error %v, want a file", err)
	}
	s.recovers()
}
