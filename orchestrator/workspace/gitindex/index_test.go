package gitindex

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sample() *Index {
	e := func(path string, mode uint32) Entry {
		return Entry{Path: path, Mode: mode, Hash: Hash{1, 2, byte(len(path))}, Stat: Stat{1, 2, 3, 4, 5, 6, 7, 8, 9}}
	}
	ix := &Index{Entries: []Entry{
		e("a", ModeFile), e("b/\x01\n", ModeExec), e("b/c", ModeLink), e(strings.Repeat("long/", 1000)+"x", ModeFile), e("\xff", ModeFile),
	}}
	ix.Entries[0].AssumeValid = true
	ix.Tree = &Tree{Entries: 5, Hash: Hash{9}, Subs: []*Tree{{Name: "b", Entries: 2, Hash: Hash{8}}, {Name: "long", Entries: -1}}}
	return ix
}

func TestRoundTrip(t *testing.T) {
	want := sample()
	got, err := Decode(Encode(want))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReadsGits reads what git itself writes in each version.
func TestReadsGits(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		dir := t.TempDir()
		git := func(args ...string) string {
			cmd := exec.Command("git", args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("git %q: %v\n%s", args, err, out)
			}
			return string(out)
		}
		git("init", "-q")
		for _, name := range []string{"a", "lib/a.go", "lib/ab.go", "lib/x/y", "meant"} {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		git("add", "a", "lib")
		if version == "3" { // git takes version 3 when an entry needs it
			git("add", "-N", "meant")
		} else {
			git("update-index", "--index-version", version)
		}
		git("write-tree")
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil || data[7] != version[0]-'0' {
			t.Fatalf("git wrote version %d, want %s (%v)", data[7], version, err)
		}
		ix, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, e := range ix.Entries {
			paths = append(paths, e.Path)
			if e.IntentToAdd != (e.Path == "meant") || e.Stat.Size == 0 != e.IntentToAdd {
				t.Errorf("version %s: %+v", version, e)
			}
		}
		if want := strings.Fields(git("ls-files")); !cmp.Equal(paths, want) {
			t.Errorf("version %s: paths %q, want %q", version, paths, want)
		}
		if version != "3" && (!ix.Tree.Valid() || ix.Tree.Sub("lib").Sub("x").Entries != 1) {
			t.Errorf("version %s: cached trees %+v", version, ix.Tree)
		}
	}
}

func TestRefuses(t *testing.T) {
	sum := func(b []byte) []byte { s := sha1.Sum(b); return append(b, s[:]...) }
	change := func(f func(ix *Index)) []byte { ix := sample(); f(ix); return Encode(ix) }
	body := Encode(sample())
	body = body[:len(body)-sha1.Size]
	for name, c := range map[string]struct {
		data        []byte
		unsupported bool
	}{
		"empty":         {nil, false},
		"cut":           {body, false},
		"flipped":       {append(bytes.Clone(body[:40]), append([]byte{body[40] ^ 1}, Encode(sample())[41:]...)...), false},
		"split index":   {sum(append(bytes.Clone(body), "link\x00\x00\x00\x00"...)), true},
		"version 5":     {sum(append([]byte("DIRC\x00\x00\x00\x05"), body[8:]...)), true},
		"too many":      {sum(append([]byte("DIRC\x00\x00\x00\x02\xff\xff\xff\xff"), body[12:]...)), false},
		"submodule":     {change(func(ix *Index) { ix.Entries[0].Mode = ModeGitlink }), true},
		"odd mode":      {change(func(ix *Index) { ix.Entries[0].Mode = 0o100600 }), true},
		"order":         {change(func(ix *Index) { ix.Entries[0].Path = "z" }), false},
		"way out":       {change(func(ix *Index) { ix.Entries[0].Path = "../a" }), false},
		"absolute":      {change(func(ix *Index) { ix.Entries[0].Path = "/a" }), false},
		"cut extension": {sum(append(bytes.Clone(body), "UNTR\x00\x00\x01\x00"...)), false},
	} {
		_, err := Decode(c.data)
		if err == nil || errors.Is(err, ErrUnsupported) != c.unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
	if ix, err := Decode(sum(append(bytes.Clone(body), "ZZZZ\x00\x00\x00\x01x"...))); err != nil || len(ix.Entries) != 5 {
		t.Errorf("an extension that may be dropped is not: %v", err)
	}
}

func TestFresh(t *testing.T) {
	now := time.Unix(100, 50)
	e := Entry{Hash: Hash{1}, Stat: Stat{CSec: 9, MSec: 100, MNsec: 49, Size: 3, Ino: 4}}
	for name, c := range map[string]struct {
		edit func(s *Stat, e *Entry)
		want bool
	}{
		"same":                 {func(*Stat, *Entry) {}, true},
		"other device":         {func(s *Stat, _ *Entry) { s.Dev = 7 }, true},
		"other size":           {func(s *Stat, _ *Entry) { s.Size = 4 }, false},
		"other inode":          {func(s *Stat, _ *Entry) { s.Ino = 5 }, false},
		"other ctime":          {func(s *Stat, _ *Entry) { s.CSec = 10 }, false},
		"as young as index":    {func(s *Stat, e *Entry) { s.MNsec, e.Stat.MNsec = 50, 50 }, false},
		"intent to add":        {func(_ *Stat, e *Entry) { e.IntentToAdd = true }, false},
		"unsettled":            {func(_ *Stat, e *Entry) { e.Unsettle() }, false},
		"unsettled, now empty": {func(s *Stat, e *Entry) { e.Unsettle(); s.Size = 0 }, false},
		"empty":                {func(s *Stat, e *Entry) { e.Stat.Size, s.Size, e.Hash = 0, 0, emptyBlob }, true},
	} {
		is, entry := e.Stat, e
		c.edit(&is, &entry)
		if got := entry.Fresh(is, now); got != c.want {
			t.Errorf("%s: fresh is %v", name, got)
		}
	}
}

// FuzzDecode: garbage does not crash it, and what it reads it writes back.
func FuzzDecode(f *testing.F) {
	f.Add(Encode(sample()), uint8(2))
	f.Add(Encode(&Index{}), uint8(4))
	f.Add([]byte("DIRC\x00\x00\x00\x04\x00\x00\x00\x01"), uint8(4))
	f.Fuzz(func(t *testing.T, data []byte, version uint8) {
		if len(data) < headerLen {
			return
		}
		data = bytes.Clone(data)
		copy(data, "DIRC\x00\x00\x00")
		data[7] = version%3 + 2
		sum := sha1.Sum(data) // without it no change would come past the checksum
		ix, err := Decode(append(data, sum[:]...))
		if err != nil {
			return
		}
		for i := range ix.Entries {
			ix.Entries[i].IntentToAdd = false
		}
		again, err := Decode(Encode(ix))
		if err != nil || !cmp.Equal(ix, again) {
			t.Fatalf("%v\n%s", err, cmp.Diff(ix, again))
		}
	})
}
