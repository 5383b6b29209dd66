//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// failed returns the names of the failed checks.
func failed(p sandbox.Proof) string {
	var names []string
	for _, c := range p.Failed() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ", ")
}

const goodStatus = "Name:\tabl-run\nUid:\t1000\t1000\t1000\t1000\nGid:\t1001\t1001\t1001\t1001\nGroups:\t1001 \n" +
	"CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n" +
	"NoNewPrivs:\t1\nSeccomp:\t2\n"

func TestStatus(t *testing.T) {
	for _, c := range []struct{ from, to, user, want string }{
		{"", "", "1000:1001", ""},
		{"\t1001 \n", "\t\n", "1000:1001", ""},
		{"", "", "1000:7", "group inside, supplementary groups inside"},
		{"Uid:\t1000\t1000", "Uid:\t1000\t0", "1000:1001", "user inside"},
		{"1000\t1000\t1000\t1000", "0\t0\t0\t0", "0:1001", "user inside"},
		{"Groups:\t1001", "Groups:\t1001 999", "1000:1001", "supplementary groups inside"},
		{"CapEff:\t0000000000000000", "CapEff:\t00000000a80425fb", "1000:1001", "capabilities inside"},
		{"CapBnd:\t0000000000000000", "CapBnd:\t0000000000000001", "1000:1001", "capabilities inside"},
		{"CapAmb", "CapXyz", "1000:1001", "capabilities inside"},
		{"NoNewPrivs:\t1", "NoNewPrivs:\t0", "1000:1001", "no new privileges"},
		{"Seccomp:\t2", "Seccomp:\t0", "1000:1001", "system calls filtered"},
		{"Seccomp:\t2", "", "1000:1001", "system calls filtered"},
	} {
		if got := failed(status(strings.Replace(goodStatus, c.from, c.to, 1), c.user)); got != c.want {
			t.Errorf("%q → %q as %s: failed are %q, want %q", c.from, c.to, c.user, got, c.want)
		}
	}
}

const goodMounts = `110 61 0:50 / / ro,relatime master:3 - overlay overlay rw
111 110 0:53 / /proc rw,nosuid - proc proc rw
112 110 0:54 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k
113 112 0:55 / /dev/pts rw,nosuid - devpts devpts rw
114 110 0:45 / /sys ro,nosuid - sysfs sysfs ro
117 115 0:30 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw
127 110 254:0 /usr/bin/tini-static /sbin/docker-init ro,relatime - ext4 /dev/vda rw
129 110 0:58 / /tmp rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=65536k
130 110 254:0 /p/src /workspace/src rw,relatime - ext4 /dev/vda rw
131 110 254:0 /p/specs\040x /workspace/specs ro,relatime - ext4 /dev/vda rw
133 110 254:0 /x/resolv.conf /etc/resolv.conf ro,relatime - ext4 /dev/vda rw
65 111 0:53 /sys /proc/sys ro,nosuid - proc proc rw
67 111 0:54 /null /proc/keys rw,nosuid - tmpfs tmpfs rw
`

func TestMounts(t *testing.T) {
	const src = "130 110 254:0 /p/src /workspace/src rw,relatime - ext4 /dev/vda rw"
	meant := []helper.ProbeMount{
		{Target: "/workspace/src"}, {Target: "/workspace/specs", ReadOnly: true}, {Target: "/tmp", Memory: true},
	}
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""},
		{"/workspace/src rw", "/workspace/src ro", "mount /workspace/src inside"},
		{"/workspace/specs ro", "/workspace/specs rw", "mount /workspace/specs inside"},
		{"/workspace/specs ro", "/elsewhere ro", "mount /workspace/specs inside, other mounts"},
		{"65 111", "1 1 254:0 /p /workspace/src rw - ext4 /dev/vda rw\n65 111", "mount /workspace/src inside"},
		{"nodev,noexec,relatime - tmpfs", "nodev,relatime - tmpfs", "mount /tmp inside"},
		{"nodev,noexec,relatime - tmpfs", "nodev,noexec,relatime - ext4", "mount /tmp inside"},
		{src, "1 1 0:60 /p/src /workspace/src rw - tmpfs tmpfs rw", ""}, // a project on a tmpfs of the host
		{src, "1 1 0:60 / /workspace/src rw - tmpfs tmpfs rw", "mount /workspace/src inside"},
		{"/ / ro", "/ / rw", "/ inside"},
		{"/proc/sys ro", "/proc/sys rw", "/proc/sys inside"},
		{"/sys /proc/sys ro", "/sys /proc/elsewhere ro", "/proc/sys inside"},
		{"/sys ro", "/sys rw", "/sys inside"},
		{"65 111", "1 1 254:0 /run/docker.sock /var/run/docker.sock rw - ext4 /dev/vda rw\n65 111", "other mounts"},
		{"65 111", "1 1 254:0 / /dev/host rw - ext4 /dev/vda rw\n65 111", "other mounts"},
		{"65 111", "1 1 254:0 / /workspace/src/sub ro - ext4 /dev/vda rw\n65 111", "other mounts"},
		{"/etc/resolv.conf ro", "/etc/resolv.conf rw", "other mounts"},
		{"65 111", "torn\n65 111", "other mounts"},
	} {
		got := failed(mounts(strings.Replace(goodMounts, c.from, c.to, 1), meant))
		if got != c.want {
			t.Errorf("%q → %q: failed are %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for at, ok := range map[string]bool{dir: true, filepath.Dir(dir): false, link: false, "/gone": false} {
		p := mounts(goodMounts, []helper.ProbeMount{{Target: at, Device: st.Dev, Inode: st.Ino}, {Target: "/unknown"}})
		if c, found := p.Get("identity of " + at); !found || c.OK != ok {
			t.Errorf("identity of %s: got %+v, want a check with ok %t", at, p, ok)
		}
		if _, found := p.Get("identity of /unknown"); found {
			t.Errorf("identity of /unknown: got %+v, want no check of it", p)
		}
	}
}

func TestEnvironment(t *testing.T) {
	meant := map[string]string{"A": helper.Digest("1"), "PATH": "", "HOSTNAME": ""}
	for _, c := range []struct {
		env string
		ok  bool
	}{
		{"A=1 PATH=/bin", true},
		{"A=1", true},
		{"A=1 PATH=/bin HOSTNAME=x", true},
		{"A=secret2", false},
		{"PATH=/bin", false},
		{"A=1 B=secret", false},
		{"A=1 A=secret", false},
		{"A=1 A=1", false},
	} {
		got := environment(strings.Fields(c.env), meant)
		if got.OK != c.ok || strings.Contains(got.Got+got.Want, "secret") {
			t.Errorf("environment %s: got %+v, want ok %t and no secret", c.env, got, c.ok)
		}
	}
}

func TestSealed(t *testing.T) {
	dir := t.TempDir()
	for at, want := range map[string]string{dir: "a new file could be opened for writing", "/gone": "a new file could not be checked: no such file or directory"} {
		if got := tryWrites(at, nil); got != want {
			t.Errorf("writing to %s: got %s, want %s", at, got, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("files left in the folder: got %v, error %v, want none", left, err)
	}
}

func TestExisting(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := existing([]string{"/gone", file + "/below"}); got != "" {
		t.Errorf("missing paths: got %q, want none", got)
	}
	link := file + ".link"
	if err := os.Symlink("/gone", link); err != nil {
		t.Fatal(err)
	}
	if got, want := existing([]string{file, link}), file+", "+link; got != want {
		t.Errorf("a file and a link: got %q, want %q", got, want)
	}
	if got := names(filepath.Dir(file), func(name string) bool { return name == "file" }); got != "file.link" {
		t.Errorf("names except file: got %q, want file.link", got)
	}
}

// An inherited open folder is found.
func TestOpenFiles(t *testing.T) {
	f, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := openFiles(); !strings.Contains(got, f.Name()) {
		t.Errorf("got %s, want %s in it", got, f.Name())
	}
}

func TestNextHops(t *testing.T) {
	routes := "Iface\tDestination\tGateway\tFlags\neth0\t00000000\t01E9D50A\t0003\neth0\t00E9D50A\t00000000\t0001\ntorn\n"
	if got := fmt.Sprint(gateways(routes)); got != "[10.213.233.1]" {
		t.Errorf("gateways: got %s, want [10.213.233.1]", got)
	}
	arp := func(flags, mac string) string {
		return "IP address HW type Flags HW address Mask Device\n10.213.233.1 0x1 " + flags + " " + mac + " * eth0\n10.213.233.2 0x1 0x2 02:42:00:00:00:01 * eth0\n"
	}
	for _, c := range []struct{ flags, mac, want string }{
		{"0x0", "00:00:00:00:00:00", ""},
		{"0x2", "02:42:0a:d5:e9:01", "10.213.233.1"},
		{"0x6", "02:42:0a:d5:e9:01", "10.213.233.1"},
	} {
		if got := answering(gateways(routes), arp(c.flags, c.mac)); got != c.want {
			t.Errorf("flags %s: %q answer, want %q", c.flags, got, c.want)
		}
	}
}

// serve starts servers that send a word, for TCP and UDP, and returns the port.
func serve(t *testing.T, word string) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); u.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(word))
			c.Close()
		}
	}()
	go func() {
		buf := make([]byte, 100)
		for {
			_, from, err := u.ReadFrom(buf)
			if err != nil {
				return
			}
			u.WriteTo([]byte(word), from)
		}
	}()
	return l.Addr().String()
}

// A word that comes back from the container's own network does not count as a response.
func TestOwnWordIsNotHeard(t *testing.T) {
	runtime.LockOSThread() // and never back: the thread ends with this test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("needs the right to make a network namespace: ", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		t.Fatal(err)
	}
	// The range has two ports, and one is asked.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40001"), 0); err != nil {
		t.Skip("needs the right to set a namespace's range of ports: ", err)
	}
	for range 20 {
		e := newSilence(&helper.ProbeNet{Word: "word", UDP: []string{"127.255.255.255:40000"}, Asks: "40000"})
		e.listen(time.Now())
		if c := e.udp.check("the host by udp"); !c.OK {
			t.Fatalf("got %+v, want ok", c)
		}
	}
}

func TestNetworkReceives(t *testing.T) {
	at, mute := serve(t, "word"), serve(t, "")
	spec := &helper.ProbeNet{Word: "word", TCP: []string{at, mute, "127.0.0.1:1", "[fe80::1%lo]:1"}, UDP: []string{at, "127.0.0.1:1"}, WaitMS: 100}
	p := Network(t.Context(), spec)
	for name, want := range map[string]string{"the host by tcp": at + " said the word", "the host by udp": at + " said the word"} {
		if c, ok := p.Get(name); !ok || c.OK || c.Got != want {
			t.Errorf("%s: got %+v, want a failure with %q", name, c, want)
		}
	}
	spec.Peers = []helper.ProbePeer{{At: "127.0.0.1:1"}} // refuses longer than the wait for silence
	p = Network(t.Context(), spec)
	for _, name := range []string{"the host by tcp", "the host by udp"} {
		if c, _ := p.Get(name); c.Got != at+" said the word" {
			t.Errorf("%s with a slow peer: got %+v, want %q", name, c, at+" said the word")
		}
	}
	spec.Weak, spec.Peers = true, nil
	if p := Network(t.Context(), spec); strings.Contains(failed(p), "the host") {
		t.Errorf("failures with weak networks allowed: got %v, want none of the host", p.Failed())
	}
	spec = &helper.ProbeNet{Word: "word", TCP: []string{mute, "127.0.0.1:1"}, WaitMS: 1, Peers: []helper.ProbePeer{{At: at, Say: "word"}, {At: mute}}}
	p = Network(t.Context(), spec)
	if c, _ := p.Get("the host by tcp"); !c.OK || c.Got != "silence, though 1 of them accept connections" {
		t.Errorf("silent host: got %+v, want ok with silence from the one open port", c)
	}
	for _, at := range []string{at, mute} {
		if c, _ := p.Get("peer " + at); !c.OK {
			t.Errorf("peer %s: got %+v, want ok", at, c)
		}
	}
	p = Network(t.Context(), &helper.ProbeNet{Peers: []helper.ProbePeer{{At: at, Say: "another"}, {At: "127.0.0.1:1"}}})
	if !strings.HasPrefix(failed(p), "peer "+at+", peer 127.0.0.1:1") {
		t.Errorf("peers with another word: got %v, want both first among the failures", p)
	}
	if got := Network(t.Context(), nil); got != nil {
		t.Errorf("results without a network: got %v, want none", got)
	}
}

// Datagrams are sent without a choice of interface and through each interface. Only a refusal by
// the kernel counts as refused.
func TestBroadcasts(t *testing.T) {
	all := socketOptions()
	if all[0].name != "" || slices.ContainsFunc(all[1:], func(o socketOption) bool { return o.name == "" || strings.HasSuffix(o.name, " lo") }) {
		t.Errorf("socket options: got %+v, want the first without a name and none for lo", all)
	}
	if p := broadcasts(&helper.ProbeNet{}); p != nil {
		t.Errorf("broadcasts without a port: got %v, want none", p)
	}
	fails := socketOption{" failing", func(int) error { return unix.EIO }}
	if err := sendDatagram(netip.AddrFrom4([4]byte{255, 255, 255, 255}), 9, "x", fails); !errors.Is(err, unix.EIO) {
		t.Errorf("got error %v, want EIO", err)
	}
}

// first returns the result of the probe for a file.
func first(t *testing.T, path string) (found helper.Probed) {
	t.Helper()
	var out bytes.Buffer
	_ = First(t.Context(), path, &out)
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "probe.json")
	if got := first(t, path); got.Error == "" || got.Proof != nil {
		t.Errorf("result without a file: got %+v, want an error and no proof", got)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := first(t, path); got.Error == "" {
		t.Errorf("result of half a file: got %+v, want an error", got)
	}
	data, err := json.Marshal(helper.ProbeSpec{User: "4711:4711", Absent: []string{path}, Folders: map[string][]string{filepath.Dir(path): {"probe.json"}}})
	if err != nil || os.WriteFile(path, data, 0o644) != nil {
		t.Fatal(err)
	}
	got := first(t, path)
	for name, ok := range map[string]bool{"user inside": false, "what must be absent": false, "all in " + filepath.Dir(path): true} {
		if c, there := got.Proof.Get(name); !there || c.OK != ok {
			t.Errorf("%s: got %+v, want a check with ok %t", name, c, ok)
		}
	}
}
