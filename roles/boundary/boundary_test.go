package boundary

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

var holds, fails = sandbox.Proof{sandbox.Same("a", "1", "1")}, sandbox.Proof{sandbox.Same("a", "1", "2")}

func TestCache(t *testing.T) {
	c, info := Cache(filepath.Join(t.TempDir(), "cache")), sandbox.Info{ID: "E", Version: "1", API: "2"}
	asked := 0
	ask := func(fresh bool, proof sandbox.Proof) (Result, error) {
		return c.Network(t.Context(), fresh, info, func(_ context.Context, id string) (Result, error) {
			asked++
			return Result{At: time.Now(), Proof: proof}, nil
		})
	}
	want := func(name string, n int, cached bool, r Result, err error) {
		t.Helper()
		if err != nil || asked != n || r.Cached != cached {
			t.Errorf("%s: %d probes, cached %t, %v", name, asked, r.Cached, err)
		}
	}
	r, err := ask(false, fails)
	want("what failed", 1, false, r, err)
	r, err = ask(false, holds)
	want("what failed is not kept", 2, false, r, err)
	r, err = ask(false, fails)
	want("what held is kept", 2, true, r, err)
	r, err = ask(true, holds)
	want("afresh", 3, false, r, err)
	info.Version = "1.1"
	r, err = ask(false, holds)
	want("another version", 4, false, r, err)
	info.Local = true
	r, err = ask(false, holds)
	want("from another machine", 5, false, r, err)
	info.ID = ""
	r, err = ask(false, holds)
	want("an engine without a name", 6, false, r, err)
	r, err = ask(false, holds)
	want("an engine without a name, again", 7, false, r, err)
	info.ID = "E"
	path := filepath.Join(string(c), c.name(info))
	for _, text := range []string{"", "{", `{"proof":[]}`, "[]"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		asked = 0
		r, err = ask(false, holds)
		want("damaged "+text, 1, false, r, err)
	}
	for _, then := range []time.Duration{-age - time.Second, time.Hour} {
		old := Result{At: time.Now().Add(then), Proof: holds}
		if err := c.put(info, old); err != nil {
			t.Fatal(err)
		}
		asked = 0
		r, err = ask(false, holds)
		want(fmt.Sprint("of ", then), 1, false, r, err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
}

// Of many at a time one probes, and the rest take what it found. The id is the
// same each time, so that what a killed probe left is found.
func TestCacheIsAskedOnceAtATime(t *testing.T) {
	c, info := Cache(t.TempDir()), sandbox.Info{ID: "E"}
	var mu sync.Mutex
	var ids []string
	probe := func(_ context.Context, id string) (Result, error) {
		mu.Lock()
		defer mu.Unlock()
		ids = append(ids, id)
		return Result{At: time.Now(), Proof: holds}, nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if r, err := c.Network(t.Context(), false, info, probe); err != nil || r.Err() != nil {
				t.Errorf("%v, %v", err, r.Err())
			}
		})
	}
	all.Wait()
	if len(ids) != 1 {
		t.Errorf("%d probes", len(ids))
	}
	if _, err := c.Network(t.Context(), true, info, probe); err != nil || ids[0] != ids[1] {
		t.Errorf("ids %q, %v", ids, err)
	}
	unlock, err := func() (func(), error) { _, u, err := c.lock(t.Context(), info); return u, err }()
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Network(ctx, true, info, probe); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever gives up waiting gets %v", err)
	}
}

// Without a place to keep it every run probes again.
func TestNoCache(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []Cache{"", Cache(file), Cache(filepath.Join(file, "below"))} {
		seen := map[string]bool{}
		for range 2 {
			_, err := c.Network(t.Context(), false, sandbox.Info{ID: "E"}, func(_ context.Context, id string) (Result, error) {
				seen[id] = true
				return Result{At: time.Now(), Proof: holds}, nil
			})
			if err != nil {
				t.Errorf("%q: %v", c, err)
			}
		}
		if len(seen) != 2 {
			t.Errorf("%q: ids %v", c, seen)
		}
	}
	if left, err := filepath.Glob("*.json"); err != nil || len(left) > 0 {
		t.Errorf("it kept %v, %v", left, err)
	}
}

func TestHostServer(t *testing.T) {
	b, err := ListenOnHost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", "127.0.0.1:"+b.Asks)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for word, says := range map[string]bool{"wrong": false, b.Word: true} {
		conn.Write([]byte(word))
		if !says {
			continue
		}
		buf := make([]byte, 100)
		if n, err := conn.Read(buf); err != nil || string(buf[:n]) != b.Word {
			t.Errorf("it answers %q, %v", buf[:n], err)
		}
	}
	if c := b.Arrived(); c.OK || c.Got != "1" {
		t.Errorf("%s datagrams counted", c.Got)
	}
	b.Close()
	if _, err := net.Dial("tcp", "127.0.0.1:"+b.Port); err == nil {
		t.Error("it goes on")
	}
	for _, h := range b.Hosts {
		if h == "127.0.0.1" || h == "::1" || strings.HasPrefix(h, "fe80") && !strings.HasSuffix(h, "%eth0") {
			t.Errorf("%s is among the addresses", h)
		}
	}
}

func TestInside(t *testing.T) {
	dir := t.TempDir()
	box := sandbox.Box{
		User: "1:2",
		Mounts: []sandbox.Mount{
			{What: sandbox.Workspace, Source: dir, Target: helper.Src},
			{What: sandbox.GitDir, Source: dir, Target: helper.Src + "/.git", ReadOnly: true},
			{What: sandbox.Specs, Source: dir, Target: helper.Specs, ReadOnly: true},
			{What: sandbox.CallOut, Source: dir, Target: helper.Out},
			{What: sandbox.Tree, Source: "volume", Target: "/app"},
		},
		Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/home/agent", Exec: true}},
	}
	absent := []string{helper.Tests, helper.Src + "/.abl", "/tmp/p/.env", "/p/.env"}
	spec := Inside(box, map[string]string{"KEY": "secret", "PATH": "/bin"}, []string{"a"}, absent)
	if err := Identify(&spec, box.Mounts); err != nil {
		t.Fatal(err)
	}
	spec.Net = Net(&HostServer{Word: "w", Port: "1", Asks: "2", Hosts: []string{"10.0.0.1", "fe80::1%eth0"}}, true)
	if spec.Env["KEY"] != helper.Digest("secret") || spec.Env["PATH"] != helper.Digest("/bin") || spec.Env["HOSTNAME"] != "" || strings.Contains(fmt.Sprint(spec), "secret") {
		t.Errorf("environment %v", spec.Env)
	}
	if got := fmt.Sprint(spec.Folders); got != "map[/abl/in:[a] /abl/out:[stdout] /workspace:[specs src]]" {
		t.Errorf("folders %s", got)
	}
	if got := fmt.Sprint(spec.Sealed); got != "[/ /abl/bin /workspace /abl/out /workspace/src/.git /workspace/specs]" {
		t.Errorf("sealed %s", got)
	}
	if got := fmt.Sprint(spec.Absent); got != "[/workspace/tests /p/.env]" {
		t.Errorf("absent %s", got)
	}
	if m := spec.Mounts; len(m) != 7 || m[0].Inode == 0 || m[4].Inode != 0 || !m[5].Memory || m[5].Exec || !m[6].Exec {
		t.Errorf("mounts %+v", m)
	}
	if n := spec.Net; fmt.Sprint(n.TCP, n.UDP) != "[10.0.0.1:1 [fe80::1%eth0]:1] [10.0.0.1:2 [fe80::1%eth0]:2]" || !n.Weak || Net(nil, false).Port != "" {
		t.Errorf("network %+v", n)
	}
	box.Mounts[0].Source = dir + "/gone"
	if err := Identify(&spec, box.Mounts); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a source that is gone: %v", err)
	}
}

// A probe that leaves out what it was asked is found.
func TestMissing(t *testing.T) {
	spec := helper.ProbeSpec{Mounts: []helper.ProbeMount{{Target: "/m", Inode: 1}}, Folders: map[string][]string{"/f": nil}, Sealed: []string{"/s"}, Net: &helper.ProbeNet{Names: []string{"n"}, Peers: []helper.ProbePeer{{At: "p"}}}}
	all := Missing(spec, nil)
	for _, name := range []string{"mount /m inside", "identity of /m", "all in /f", "writing in /s", "name n", "peer p", "the host by tcp", "environment inside"} {
		if !slices.Contains(all, name) {
			t.Errorf("%q is not asked for", name)
		}
	}
	var whole sandbox.Proof
	for _, name := range all {
		whole = append(whole, sandbox.Check{Name: name})
	}
	if left := Missing(spec, whole); len(left) > 0 {
		t.Errorf("still missing: %q", left)
	}
}

// Silence on an ordinary network is a firewall's where the engine is on this machine,
// and proves nothing of one in a virtual machine. A proof from there is kept apart.
func TestControl(t *testing.T) {
	silent, heard := sandbox.Proof{sandbox.Same("the host by tcp", "", "")}, sandbox.Proof{sandbox.Same("the host by tcp", "", "said the word")}
	for _, c := range []struct {
		control     sandbox.Proof
		virtual, ok bool
	}{{heard, false, true}, {heard, true, true}, {silent, false, true}, {silent, true, false}, {nil, true, false}} {
		if got := controlled(c.control, c.virtual); got.OK != c.ok {
			t.Errorf("virtual %t: %+v, want %t", c.virtual, got, c.ok)
		}
	}
	cache := Cache(t.TempDir())
	if cache.name(sandbox.Info{ID: "E", Near: true}) == cache.name(sandbox.Info{ID: "E"}) {
		t.Error("a proof from nearby counts from afar")
	}
}
