package call

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
	"abl/roles/boundary"
)

// fills returns an agent that writes files of a size and waits.
func fills(r *rig, files, bytes int) sandboxtest.Script {
	var writing sync.WaitGroup
	r.Cleanup(writing.Wait) // before its files are removed
	return func(b sandbox.ContainerConfig) sandbox.Exit {
		writing.Add(1)
		defer writing.Done()
		dir := sandboxtest.Host(b, helper.Src)
		for i := range files {
			sub := filepath.Join(dir, "out")
			if os.MkdirAll(sub, 0o755) != nil || os.WriteFile(filepath.Join(sub, fmt.Sprint("f", i)), make([]byte, bytes), 0o644) != nil {
				return sandbox.Exit{Code: 9}
			}
		}
		<-r.Context().Done()
		return sandbox.Exit{}
	}
}

// A call that fills its workspace is stopped, and the largest file is named. Earlier files do not
// count.
func TestGrowthEndsACall(t *testing.T) {
	for _, c := range []struct {
		name         string
		grow         roles.DiskQuota
		files, bytes int
		want         []string
	}{
		{"bytes", roles.DiskQuota{Bytes: 4 << 20}, 3, 3 << 20, []string{"(limits.disk is 4 MiB)", `"out/f`, "with 3 MiB"}},
		{"names", roles.DiskQuota{Inodes: 50}, 200, 0, []string{"(limits.inodes is 50)", `the most new ones are in "./out/"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.Engine.Scripts = map[string]sandboxtest.Script{"role": fills(r, c.files, c.bytes)}
			c.grow.Every = time.Millisecond
			r.runner.Quota = c.grow
			rolestest.Write(t, filepath.Join(r.runner.Project.Src, "before/big"), strings.Repeat("x", 9<<20))
			for i := range 100 {
				rolestest.Write(t, filepath.Join(r.runner.Project.Src, "before", fmt.Sprint(i)), "")
			}
			o := r.run()
			if o.Class != outcome.Disk || o.Exit != 143 {
				t.Fatalf("call: got %s, want %s with exit code 143", show(o), outcome.Disk)
			}
			for _, want := range append(c.want, "its workspace grew by") {
				if !strings.Contains(o.Reason, want) {
					t.Errorf("reason: got %q, want it to contain %q", o.Reason, want)
				}
			}
			if why, err := r.rec().Stopped(); err != nil || why.Class != outcome.Disk || !strings.Contains(o.Reason, why.Reason) {
				t.Errorf("reason on disk: got %+v, error %v, want %s and a part of %q",
					why, err, outcome.Disk, o.Reason)
			}
		})
	}
}

// A call below its limits continues, however large its workspace is.
func TestCallWithinItsQuota(t *testing.T) {
	r := newRig(t, nil)
	r.Engine.Scripts = map[string]sandboxtest.Script{"role": func(b sandbox.ContainerConfig) sandbox.Exit {
		dir := sandboxtest.Host(b, helper.Src)
		for i := range 40 {
			if os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 1<<20), 0o644) != nil || os.Remove(filepath.Join(dir, fmt.Sprint(i))) != nil {
				return sandbox.Exit{Code: 9}
			}
		}
		rolestest.Prints(b, "end\n")
		return sandbox.Exit{}
	}}
	r.runner.Quota = roles.DiskQuota{Bytes: 8 << 20, Inodes: 10, Every: time.Millisecond}
	rolestest.Write(t, filepath.Join(r.runner.Project.Src, "big"), strings.Repeat("x", 20<<20))
	if o := r.run(); o.Class != outcome.Done {
		t.Errorf("call: got %s, want %s", show(o), outcome.Done)
	}
}

// An abl that attaches to a call uses the measurement from before the call.
func TestGrowthAfterAKill(t *testing.T) {
	r := newRig(t, nil)
	r.Engine.Scripts = map[string]sandboxtest.Script{"role": fills(r, 3, 3<<20)}
	r.runner.Quota = roles.DiskQuota{Bytes: 4 << 20, Every: time.Millisecond}
	r.begin()
	if o := r.run(); o.Class != outcome.Disk {
		t.Errorf("call: got %s, want %s", show(o), outcome.Disk)
	}
}

// If a container cannot be created, no measurement keeps running.
func TestMeasuredToTheEnd(t *testing.T) {
	r := newRig(t, nil)
	for i := range 1000 {
		rolestest.Write(t, filepath.Join(r.runner.Project.Src, fmt.Sprintf("%d/f", i)), "")
	}
	r.Engine.Fail("Create", 2, errors.New("no")) // the first is the holder
	r.runner.Quota, r.job.Place = roles.DiskQuota{Bytes: 1 << 20}, boundary.PlaceBuilder
	if _, err := r.runner.Run(t.Context(), r.job); err == nil || !strings.Contains(err.Error(), "cannot create the builder's container: no") {
		t.Fatalf("error of a failed Create: got %v, want one that names the builder's container", err)
	}
	if _, ok, err := roles.Read[roles.TreeSize](r.rec(), treeFile); !ok || err != nil {
		t.Errorf("measured size: got found %t, error %v, want a size", ok, err)
	}
}

func TestNoRoomForACall(t *testing.T) {
	r := newRig(t, rolestest.Says("end\n", 0))
	r.runner.Quota = roles.DiskQuota{Disks: []string{"/proc", r.runner.Project.Root, "/none/such"}} // which tell of no room at all, of enough, and nothing
	if o := r.run(); o.Class != outcome.Done {
		t.Errorf("call: got %s, want %s", show(o), outcome.Done)
	}
}

// A full disk ends the running call, whatever fills it. Here a deleted file that is still open uses
// the space.
func TestDiskFillsUp(t *testing.T) {
	disk := rolestest.SmallDisk(t)
	if disk == "" {
		return
	}
	r := newRig(t, nil)
	r.Engine.Scripts = map[string]sandboxtest.Script{"role": func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "in "+helper.Src+"\n") // before the disk is full, at which the call is ended
		f, err := os.Create(filepath.Join(disk, "x"))
		if err != nil || os.Remove(f.Name()) != nil {
			return sandbox.Exit{Code: 9}
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, 62<<20)); err != nil {
			return sandbox.Exit{Code: 9}
		}
		<-r.Context().Done()
		return sandbox.Exit{}
	}}
	r.runner.Quota = roles.DiskQuota{Disks: []string{disk}, Every: 1}
	if o := r.run(); o.Class != outcome.Disk || !strings.Contains(o.Reason, "need at least") {
		t.Errorf("call on a full disk: got %s, want %s with the space that it needs", show(o), outcome.Disk)
	}
}
