package gitobj

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/orchestrator/workspace/gitdir"

	"github.com/google/go-cmp/cmp"
)

func TestTreeRoundTrip(t *testing.T) {
	want := []TreeItem{{"a", 0o100644, Hash{1}}, {"b \n", 0o40000, Hash{0, 2}}, {"\xff", 0o120000, Hash{3}}}
	var b []byte
	for _, it := range want {
		b = AppendTreeItem(b, it)
	}
	got, err := ParseTree(b)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	for _, bad := range []string{"x", "100644 a\x00short", "9 a\x00" + strings.Repeat("x", 20), "100644 \x00" + strings.Repeat("x", 20), "100644 a/b\x00" + strings.Repeat("x", 20)} {
		if items, err := ParseTree([]byte(bad)); err == nil {
			t.Errorf("ParseTree(%q) gives %v", bad, items)
		}
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add(AppendTreeItem(nil, TreeItem{"a", 0o100644, Hash{1}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := ParseTree(data)
		if err != nil {
			return
		}
		var b []byte
		for _, it := range items {
			b = AppendTreeItem(b, it)
		}
		if again, err := ParseTree(b); err != nil || !cmp.Equal(items, again) {
			t.Fatalf("%v: %v, again %v", err, items, again)
		}
	})
}

func TestMessage(t *testing.T) {
	text, err := FormatMessage("phase1/build/step-1", [][2]string{{"Abl-Call", "c1.1"}, {"Abl-Role", "builder: x"}})
	if err != nil {
		t.Fatal(err)
	}
	subject, trailers := ParseMessage(text)
	want := map[string]string{"Abl-Call": "c1.1", "Abl-Role": "builder: x"}
	if subject != "phase1/build/step-1" || !cmp.Equal(trailers, want) {
		t.Errorf("%q %v", subject, trailers)
	}
	for _, bad := range []struct{ subject, key, value string }{
		{"", "K", "v"}, {"a\nb", "K", "v"}, {"a", "K y", "v"}, {"a", "", "v"}, {"a", "K", "v\nOther: w"}, {"a\x00", "K", "v"},
	} {
		if text, err := FormatMessage(bad.subject, [][2]string{{bad.key, bad.value}}); err == nil {
			t.Errorf("%+v gives %q", bad, text)
		}
	}
}

func TestParseForeignMessage(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                    {},
		"subject: not a trailer\n":            {},
		"s\n\nbody: one\n\nAbl-Call: x\r\n\n": {"Abl-Call": "x"},
		"s\nAbl-Call: y\n":                    {"Abl-Call": "y"},
	} {
		if _, got := ParseMessage(text); !cmp.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// repository makes a .git folder that git accepts.
func repository(t *testing.T) gitdir.Dir {
	t.Helper()
	dir := t.TempDir()
	run(t, dir, "init", "-q", "--bare")
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	return gitdir.At(dir, info)
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// put adds n different blobs and gives back their names.
func put(t *testing.T, s *Sink, n, size int) (names []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, uint64(n)))
	for range n {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte(rng.IntN(7))
		}
		name := Name(Blob, data)
		if err := errors.Join(s.Put(Blob, name, data), s.Put(Blob, name, data)); err != nil {
			t.Fatal(err)
		}
		names = append(names, name.String())
	}
	return names
}

func TestSink(t *testing.T) {
	for name, c := range map[string]struct{ count, size, packs int }{
		"few": {3, 100, 0}, "many": {1000, 300, 1}, "few but large": {2, 1 << 20, 1}, "none": {0, 0, 0},
	} {
		d := repository(t)
		s := NewSink(d)
		names := put(t, s, c.count, c.size)
		if err := s.Finish(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s.Close()
		if out := run(t, d.Path, "fsck", "--strict", "--no-dangling"); strings.Contains(out, "error") {
			t.Errorf("%s: %s", name, out)
		}
		for _, h := range names {
			run(t, d.Path, "cat-file", "-e", h)
		}
		packs, _ := filepath.Glob(d.Join("objects/pack/*"))
		if len(packs) != 2*c.packs {
			t.Errorf("%s: %q", name, packs)
		}
		for _, p := range packs {
			run(t, d.Path, "verify-pack", p)
		}
	}
}

func TestStream(t *testing.T) {
	d := repository(t)
	s := NewSink(d)
	big := bytes.Repeat([]byte("0123456789abcdef"), 300_000)
	name := Name(Blob, big)
	lie := Name(Blob, []byte("something else"))
	if err := s.PutStream(Blob, lie, int64(len(big)), bytes.NewReader(big)); !errors.Is(err, ErrMoved) {
		t.Errorf("a stream under another name: %v", err)
	}
	if err := s.PutStream(Blob, name, int64(len(big)), bytes.NewReader(big[:1000])); !errors.Is(err, ErrMoved) {
		t.Errorf("a short stream: %v", err)
	}
	if err := s.PutStream(Blob, name, int64(len(big)), bytes.NewReader(big)); err != nil {
		t.Fatal(err)
	}
	put(t, s, 20, 50)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if got := run(t, d.Path, "cat-file", "-s", name.String()); got != "4800000\n" {
		t.Errorf("size %s", got)
	}
	if out := run(t, d.Path, "count-objects", "-v"); !strings.Contains(out, "in-pack: 21") {
		t.Error(out)
	}
	run(t, d.Path, "fsck", "--strict")
}

func TestDropped(t *testing.T) {
	d := repository(t)
	s := NewSink(d)
	put(t, s, 100, 100)
	s.Close()
	if left, _ := filepath.Glob(d.Join("objects/*/*")); len(left) > 0 {
		t.Errorf("a dropped sink leaves %q", left)
	}
}

func TestFarOffsets(t *testing.T) {
	near, away := packed{Hash{1}, 7, 100}, packed{Hash{0}, 8, 5 << 31}
	b := encodeIdx([]packed{near, away}, Hash{})
	want := 8 + 1024 + 2*20 + 2*4 + 2*4 + 8 + 20 + 20
	if len(b) != want || b[8+1024+40+8] != 0x80 {
		t.Errorf("%d bytes, want %d", len(b), want)
	}
}

func TestCommit(t *testing.T) {
	d := repository(t)
	tree := Name(TreeKind, nil)
	when := time.Unix(1700000000, 0).In(time.FixedZone("", -90*60))
	data := EncodeCommit(tree.String(), "", when, "s\n")
	name := Name(CommitKind, data)
	for range 2 { // twice is once
		if err := errors.Join(WriteLoose(d, TreeKind, tree, nil), WriteLoose(d, CommitKind, name, data)); err != nil {
			t.Fatal(err)
		}
	}
	run(t, d.Path, "update-ref", "refs/heads/x", name.String())
	if got := run(t, d.Path, "log", "-1", "--format=%an %ae %ci %s", "x"); got != "abl abl@localhost 2023-11-14 20:43:20 -0130 s\n" {
		t.Error(got)
	}
	if out := run(t, d.Path, "fsck", "--strict"); strings.Contains(out, "error") {
		t.Error(out)
	}
	if h, err := ParseHash(name.String()); err != nil || h != name {
		t.Error(h, err)
	}
	if _, err := ParseHash("12"); err == nil {
		t.Error("a short name is read")
	}
}
