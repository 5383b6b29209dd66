package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// Group B: what a role sees, and the way out of its container.
func TestContainerHolds(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	s.plays(t, kernelAttacks())
}

func TestMountsHold(t *testing.T) {
	s := newScene(t, usual+nodeApp)
	s.plays(t, mountAttacks())
}

// kernelAttacks are system calls and devices.
func kernelAttacks() []attack {
	calls := func(id, what, names string) attack {
		return attack{id: id, by: "both", what: what, script: "$A " + names}
	}
	return []attack{
		calls("B05", "mount, unmount, change the root", "mount,umount,remount,pivot_root,chroot,fsopen,open_tree"),
		calls("B05-ns", "new namespaces, or those of process 1", "unshare,newnet,setns"),
		{id: "B05-sh", by: "both", what: "the same by programs", script: `
fails 'permitted|denied|must be superuser' mount -t tmpfs x /mnt
fails 'permitted|denied' unshare -Ur id
fails 'permitted|denied' nsenter -t 1 -a id
fails 'permitted|denied' chroot /proc/1/root id
fails 'permitted|denied|No such' losetup -f`},
		{id: "B06", by: "both", what: "settings of the kernel", script: `
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo x > /proc/sys/kernel/core_pattern'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo h > /proc/sysrq-trigger'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo /tmp/x > /sys/kernel/uevent_helper'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo +x > /proc/sys/fs/binfmt_misc/register'`},
		{id: "B06-read", by: "both", what: "memory and secrets of the kernel", script: `
empty head -c 16 /proc/kcore
empty head -c 16 /dev/mem
empty head -c 16 /dev/kmsg
empty head -c 16 /proc/keys
empty sh -c "ls /sys/firmware; ls /proc/acpi; cat /proc/sched_debug /proc/timer_list"
fails 'permitted|denied' dmesg`},
		calls("B09", "device nodes", "mknod_block,mknod_char,mknod_tmp"),
		{id: "B09-disk", by: "both", what: "the host's disks", script: `
empty sh -c 'ls /dev/sd* /dev/vd* /dev/nvme* /dev/dm-* /dev/mapper /dev/loop* /dev/kvm /dev/fuse'
empty find /dev -type b
for d in $(find /dev -type c 2>/dev/null); do case $d in
  /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/pts/ptmx|/dev/ptmx) held $d;;
  *) [ -r $d ] && hole "$d can be read"; held "$d";;
esac; done`},
		calls("B18", "asynchronous calls that pass the filter by", "io_uring_setup"),
		calls("B18-vsock", "a socket to the machine below", "vsock"),
		calls("B18-keys", "the kernel's key rings", "add_key,request_key,keyctl"),
		calls("B18-bpf", "programs in the kernel and its events", "bpf,perf_event_open,userfaultfd,fanotify_init,lookup_dcookie"),
		calls("B18-module", "another kernel, or modules of this one", "kexec_load,init_module,finit_module,delete_module"),
		calls("B18-host", "the host's name, clock, swap, log and power", "sethostname,clock_settime,swapon,acct,syslog,quotactl,reboot"),
		calls("B18-handle", "the host's root by a guessed handle", "open_by_handle"),
		calls("B18-vm", "other processes by the kernel's calls", "process_vm_readv,process_vm_writev,process_madvise,ptrace,kcmp,pidfd_getfd"),
		{id: "B18-steer", by: "both", what: "the weight, processors and limits of process 1", script: "$A steers"},
		{id: "B18-own", by: "both", what: "its own, which programs may change", script: `
tries nice -n 5 true; tries taskset -c 0 true; tries ionice -c 3 true; tries chrt -b 0 true; tries prlimit --nofile=64 true; held allowed`},
		calls("B18-aio", "contexts of asynchronous reads, of which the machine has few", "io_setup"),
		calls("B18-clone", "a process with namespaces of its own", "clone_newuser"),
		{id: "B18-mem", by: "both", what: "the memory of what watches", script: `
for p in 1 $(grep -lE '^/abl/bin/abl-(run|broker)' /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
  sh -c "exec 3<>/proc/$p/mem" 2>/dev/null && hole "process $p can be written: $(tr '\0' ' ' </proc/$p/cmdline)" || held "process $p"
  empty cat /proc/$p/environ
done`},
		calls("B18-id", "another user", "setuid,setgid,setgroups,chown,setxattr,immutable,nice"),
		calls("E06", "raw sockets, false ARP, tunnels", "raw_icmp,raw_tcp,packet,packet_arp,tun"),
		calls("E07", "another route or address", "route,address"),
		{id: "B18-suid", by: "both", what: "programs of the image that give root", script: `
for p in $(find / -xdev -perm /6000 -type f 2>/dev/null); do held "$p is there and cannot raise"; done
fails 'Authentication|denied|must be run|Cannot|failure|permitted' su -c id
fails 'denied|permitted|Operation' setpriv --reuid=0 id
grep -q '^NoNewPrivs:.1$' /proc/self/status && held nnp || hole 'new privileges can be had'
for c in CapInh CapPrm CapEff CapBnd CapAmb; do grep -q "^$c:.0000000000000000$" /proc/self/status && held $c || hole "$(grep $c /proc/self/status)"; done
grep -q '^Seccomp:.2$' /proc/self/status && held seccomp || hole 'no seccomp filter'`},
	}
}

// mountAttacks are about files that are not the role's.
func mountAttacks() []attack {
	return []attack{
		{id: "B03", by: "both", what: "files of the project and the person", script: `
empty find / -xdev \( -name .env -o -name state.json -o -name tokens.csv -o -name config.yaml -path '*abl*' -o -name host.txt \)
empty ls /workspace/src/../../.env /workspace/tests/../../.env ../.env ../../.env ../.abl
empty ls /root /home/*/.ssh /home/agent/.ssh
empty grep -rls 'canary''Env\|canary''Key\|canary''Host' $PLACES --exclude=attacker`},
		{id: "F14", by: "verifier", what: "the source, by path and by URL", script: `
empty ls /workspace/src
empty curl -s file:///workspace/src/lib/secret.mjs file:///src/lib/secret.mjs
empty grep -rls 'canary''Src' $PLACES`},
		{id: "F14-tests", by: "builder", what: "the tests, by path", script: `
empty ls /workspace/tests
empty grep -rls 'canary''Tests' $PLACES`},
		{id: "B04", by: "both", what: "the engine's socket, or any other", script: `
empty ls /var/run/docker.sock /run/docker.sock /run/containerd /run/podman /run/systemd /run/dbus
empty find / -xdev -type s
empty sh -c "grep -v '^Num' /proc/net/unix | grep -v '@' | grep -v ' /abl/door/'"
fails 'ould.*connect' curl -sS -m 3 --unix-socket /abl/door/broker http://x/
fails 'ould.*connect|refused|resolve' curl -sS -m 3 http://127.0.0.1:2375/version`},
		{id: "B12", by: "both", what: "the specs", script: `
fails 'Read-only|denied' sh -c 'echo x >> /workspace/specs/phase1.md'
fails 'Read-only|denied' touch /workspace/specs/phase2.md
fails 'Read-only|denied' chmod 777 /workspace/specs /workspace/specs/phase1.md
fails 'Read-only|busy' mv /workspace/specs/phase1.md /tmp/
fails 'Read-only|busy' rm -rf /workspace/specs
fails 'Read-only|busy|cross-device' mv /workspace/specs /workspace/other
fails 'Invalid cross|Read-only|cross-device' ln /workspace/specs/phase1.md ./linked
fails 'permitted|denied|must be superuser' mount -o remount,rw /workspace/specs
fails 'permitted|denied|must be superuser' umount /workspace/specs
fails 'Read-only|No such|not a mount|permitted' sh -c 'mkdir /workspace/specs/sub'`},
		{id: "F09", by: "both", what: "its own prompt and orders, and the other one's", script: `
fails 'Read-only|denied' sh -c 'echo x >> /abl/in/prompt.md'
fails 'Read-only|denied' sh -c 'rm /abl/in/commands.json'
fails 'Read-only|denied' sh -c 'echo x > /abl/in/new'
fails 'Read-only|denied' sh -c 'echo x > /abl/bin/abl-run'
fails 'Read-only|denied' cp /bin/true /abl/bin/abl-cmd
[ "$(ls -A /abl/in | tr '\n' ' ' | grep -c "builder.*verifier")" = 0 ] && held 'one role in /abl/in' || hole "$(ls /abl/in)"`},
		{id: "B03-root", by: "both", what: "programs and settings of the container", script: `
for f in /etc/passwd /usr/bin/git /usr/lib/x /bin/sh /etc/ld.so.preload /var/x /opt/x /root/x /srv/x /run/x /x /abl/x /workspace/x; do
  fails 'Read-only|denied' sh -c ": >> $f"; done`},
		{id: "B16", by: "both", what: "the way from a mount to its neighbours", script: `
tries cat /proc/self/mountinfo
case $PWD in */src) other=.abl/tests;; *) other=/src;; esac
empty sh -c "awk '{print \$4}' /proc/self/mountinfo | grep -v 'in$\|/std' | grep '$other\$'"
empty sh -c 'awk "{print \$4}" /proc/self/mountinfo | grep "\.env\|docker.sock\|/logs$\|/calls$"'`},
		{id: "B17", by: "both", what: "control groups", script: `
fails 'Read-only|denied|No such|nonexistent' mkdir /sys/fs/cgroup/mine /sys/fs/cgroup/memory/mine
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 1 > /sys/fs/cgroup/memory/notify_on_release'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo max > /sys/fs/cgroup/pids/pids.max || echo max > /sys/fs/cgroup/pids.max'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo /tmp/x > /sys/fs/cgroup/memory/release_agent'
fails 'Read-only|denied|No such|nonexistent' sh -c 'echo 0 > /sys/fs/cgroup/cgroup.procs'
empty find /sys -writable -type f`},
		{id: "B19", by: "both", what: "processes of others", script: `
n=$(ls -d /proc/[0-9]* | wc -l); [ "$n" -lt 30 ] && held "$n processes" || hole "$n processes are seen"
empty sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" "\n" | grep -x "dockerd\|containerd\|abl\|phase\|sshd\|abl-holder\|abl-gateway"'
empty sh -c 'cat /proc/[0-9]*/environ | tr "\0" "\n" | grep -i "canary[E]nv\|canary[K]ey"'`},
		{id: "B19-kill", by: "both", what: "ending everything within reach", script: `
kill -STOP 1; kill -KILL 1
kill -0 1 && held 'process 1 is there'`},
		{id: "B19-signals", by: "both", what: "process 1, by every signal at which a program of its kind ends", script: "$A signals"},
	}
}

// Group B, between calls: nothing of one call's is there in the next.
func TestCallsAreFresh(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	leave := `touch /tmp/x /dev/shm/x "$HOME/x"; mkdir -p "$HOME/.gemini"; echo x > "$HOME/.gemini/settings.json"; git config --global alias.st '!touch /tmp/P'; (setsid sleep 3000 >/dev/null 2>&1 &)`
	look := []attack{{id: "B20", by: "both", what: "what an earlier call left in /tmp, HOME, shared memory and processes", script: `
empty ls /tmp/x /dev/shm/x "$HOME/x" "$HOME/.gemini" "$HOME/.gitconfig"
empty sh -c 'cat /proc/[0-9]*/cmdline | tr "\0" " " | grep -o "sleep.300[0]"'
empty sh -c 'tail -qn +2 /proc/sysvipc/*'`}}
	first := verifies(run(leave), write("failed_specs.md", "SPEC: GET / → 200 with the text ok\nINPUT: GET /\nOBSERVED: nothing\n"))
	first.Iteration = 1
	build := builds(run(leave))
	build.Iteration = 1
	s.script(build, first, builds(steps("builder", look)...), verifies(steps("verifier", look)...))
	s.play(0)
	for _, key := range []string{"p1-build-2.1", "p1-verify-2.1"} {
		role := strings.Split(key, "-")[1]
		t.Run("B20-"+role, func(t *testing.T) { held(t, look[0], role, s.Printed(key)) })
	}
}

// Group B, afterwards: what must not stay in a workspace.
func TestBitsAreCleared(t *testing.T) {
	lab.Long(t)
	s := newScene(t, usual+nodeApp)
	s.plays(t, []attack{
		{id: "B07", by: "both", what: "programs with setuid and setgid", script: `
cp /bin/sh ./s && chmod 6755 s && mkdir -p sub/deep && cp /bin/true sub/deep/t && chmod 4711 sub/deep/t && held 'left behind'`, after: func(t *testing.T, s *scene, r lab.Result) {
			wants(t, "the report", r.Stdout, "setuid")
		}},
		{id: "B07-ignored", by: "both", what: "the same where the history does not look", script: `
mkdir -p skipped/.git && echo skipped >> .gitignore && cp /bin/sh skipped/s && cp /bin/sh skipped/.git/s && chmod 6755 skipped/s skipped/.git/s && held 'left behind'`},
		{id: "B07-socket", by: "both", what: "sockets", script: `
$A socket $PWD/sock && $A socket $PWD/sub/sock2; [ -S sock ] && [ -S sub/sock2 ] && held 'left behind'`, after: isGone("sock", "sub/sock2")},
		{id: "B10", by: "both", what: "permissions that shut abl out, or let everybody in", script: `
mkdir -p shut/in && echo x > shut/in/f && chmod 000 shut/in/f shut/in shut && chmod 777 . && held 'left behind'`},
	})
	if _, err := os.Lstat(filepath.Join(s.Dir, "src/s")); err != nil {
		t.Errorf("the file itself is gone: %v", err)
	}
	s.recovers()
}
