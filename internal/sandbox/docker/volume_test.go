package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/sandbox"
)

// view creates a copy-on-write view of a directory.
func (l *lab) view(lower string) sandbox.Volume {
	l.Helper()
	upper := sandbox.Volume{Name: sandbox.Name(l.project, "upper"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(l.Context(), upper))
	tree := sandbox.Volume{Name: sandbox.Name(l.project, "tree"), Labels: l.labels("volume"), Lower: []string{lower}, Upper: upper.Name, Image: probeImage}
	l.must(l.EnsureVolume(l.Context(), tree))
	l.must(l.EnsureVolume(l.Context(), tree)) // resumed: it is there
	return tree
}

func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Name()] = string(text)
	}
	return out
}

func TestOverlayShowsATreeAndLeavesIt(t *testing.T) {
	onThisMachine(t)
	l := newLab(t)
	files := map[string]string{"a": "one", "b": "two"}
	lower := l.dir(files)
	tree := l.view(lower)
	mount := sandbox.Mount{What: sandbox.Tree, Source: tree.Name, Target: "/app"}

	first := l.container("a", "cat", "/app/a", "--", "write", "/app/a", "changed", "--", "remove", "/app/b", "--", "write", "/app/c", "new")
	first.Mounts = []sandbox.Mount{mount}
	if log := l.good(first); log != "one" {
		t.Errorf("file in the first container: got %q, want %q", log, "one")
	}
	if diff := cmp.Diff(files, treeOf(t, lower)); diff != "" {
		t.Errorf("the tree below changed (-want +got):\n%s", diff)
	}
	second := l.container("b", "cat", "/app/a", "--", "cat", "/app/c")
	second.Mounts = []sandbox.Mount{mount}
	if log := l.good(second); log != "changednew" {
		t.Errorf("files in the second container: got %q, want %q", log, "changednew")
	}
	took, err := l.Usage(t.Context(), tree.Upper)
	if want := int64(len("changednew")); err != nil || took < want || took > 1<<20 {
		t.Errorf("size of the written files: got %d bytes, error %v, want %d or little more", took, err, want)
	}
	if took, err := l.Usage(t.Context(), l.project+"-none"); err == nil {
		t.Errorf("size of a missing volume: got %d bytes, want an error", took)
	}
	third := l.container("c", "cat", "/proc/mounts")
	third.Mounts = []sandbox.Mount{mount}
	if log := l.good(third); !strings.Contains(log, "overlay /app overlay rw,nosuid,nodev") {
		t.Errorf("mounts: got\n%s\nwant %q in it", log, "overlay /app overlay rw,nosuid,nodev")
	}

	other := tree
	other.Lower = []string{l.dir(nil)}
	if err := l.EnsureVolume(t.Context(), other); err == nil || !strings.Contains(err.Error(), "with different directories") {
		t.Errorf("view of another tree with the same name: got error %v, want one with %q",
			err, "with different directories")
	}
	list, err := l.List(t.Context(), map[string]string{sandbox.LabelProject: l.project, sandbox.LabelKind: "helper"})
	if l.must(err); len(list) != 0 {
		t.Errorf("helper containers left: got %+v, want none", list)
	}
}

// A kept view keeps the volume for its writes, which no container mounts.
func TestSweepKeepsVolumesOfViews(t *testing.T) {
	onThisMachine(t)
	l := newLab(t)
	tree := l.view(l.dir(map[string]string{"a": "one"}))
	desired := l.container("a", "cat", "/app/a")
	desired.Mounts = []sandbox.Mount{{What: sandbox.Tree, Source: tree.Name, Target: "/app"}}
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	removed, err := l.Sweep(t.Context(), l.ours(), func(sandbox.Status) bool { return true })
	if l.must(err); len(removed) != 0 {
		t.Errorf("removed objects: got %v, want none", removed)
	}
	l.must(l.Start(t.Context(), desired.Name))
	if exit, err := l.Wait(t.Context(), desired.Name); err != nil || exit.Code != 0 {
		t.Errorf("container with the view: got %+v, error %v, want exit code 0", exit, err)
	}
	removed, err = l.Sweep(t.Context(), l.ours(), nil)
	l.must(err)
	if diff := cmp.Diff([]string{desired.Name, tree.Name, tree.Upper}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
}

// A volume or network with a project's label but another name does not belong to abl.
func TestSweepLeavesOtherNames(t *testing.T) {
	l, name := newLab(t), "their-"+strings.ToLower(rand.Text()[:8])
	l.must(l.EnsureVolume(t.Context(), sandbox.Volume{Name: name, Labels: l.labels("volume")}))
	l.must(l.EnsureNetwork(t.Context(), sandbox.Network{Name: name, Labels: l.labels("network"), Pool: testPool}))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		l.must(errors.Join(l.api.VolumeRemove(ctx, name, false), l.api.NetworkRemove(ctx, name)))
	})
	if removed, err := l.Sweep(t.Context(), l.ours(), nil); err != nil || len(removed) > 0 {
		t.Errorf("removed objects: got %v, error %v, want none", removed, err)
	}
}

// An object in use by a foreign container is an error until that container is removed.
func TestSweepOfObjectsInUse(t *testing.T) {
	l := newLab(t)
	volume := sandbox.Volume{Name: sandbox.Name(l.project, "used"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(t.Context(), volume))
	desired := l.container("a", "exit", "0")
	desired.Mounts = []sandbox.Mount{{What: sandbox.Scratch, Source: volume.Name, Target: "/used"}}
	_, err := l.Create(t.Context(), desired)
	l.must(err)
	mine := map[string]string{sandbox.LabelProject: l.project, sandbox.LabelKind: "volume"}
	if removed, err := l.Sweep(t.Context(), mine, nil); err == nil || len(removed) != 0 {
		t.Errorf("sweep while the volume is in use: got %v removed, error %v, want none and an error", removed, err)
	}
	witness := l.container("b", "exit", "0")
	witness.Labels = volume.Labels
	_, err = l.Create(t.Context(), witness)
	l.must(err)
	looks := 0
	again := func(sandbox.Status) bool {
		if looks++; looks == 2 {
			l.must(l.Remove(t.Context(), desired.Name))
		}
		return true
	}
	if removed, err := l.Sweep(t.Context(), mine, again); err != nil || !slices.Equal(removed, []string{volume.Name}) {
		t.Errorf("sweep of a volume no longer in use: got %v removed, error %v, want %s", removed, err, volume.Name)
	}
}

func TestOverlayRefuses(t *testing.T) {
	onThisMachine(t)
	l := newLab(t)
	upper := sandbox.Volume{Name: sandbox.Name(l.project, "upper"), Labels: l.labels("volume")}
	l.must(l.EnsureVolume(t.Context(), upper))
	odd := filepath.Join(t.TempDir(), "a,b")
	l.must(os.Mkdir(odd, 0o755))
	link := filepath.Join(t.TempDir(), "link")
	l.must(os.Symlink(t.TempDir(), link))
	for lower, say := range map[string]string{odd: "without comma", link: "not a directory", "/nowhere/at/all": "no such file"} {
		err := l.EnsureVolume(t.Context(), sandbox.Volume{Name: sandbox.Name(l.project, "tree"), Labels: l.labels("volume"), Lower: []string{lower}, Upper: upper.Name, Image: probeImage})
		if err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: got %v, want %q", lower, err, say)
		}
	}
}
