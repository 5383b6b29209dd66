package git

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const nobody = 65534

// asNobody runs the calling test again in a process without root privileges, to which permissions
// apply.
func asNobody(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	dir, err := os.MkdirTemp("", "workspace-nobody-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	copied := filepath.Join(dir, "test")
	data, err := os.ReadFile(exe)
	must(t, err)
	must(t, os.WriteFile(copied, data, 0o755))
	must(t, os.Chown(dir, nobody, nobody))
	cmd := exec.Command(copied, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("test as nobody: got %v, want no error\n%s", err, out)
	}
}

// If root works on a repository of another user, all files written to .git belong to that user,
// whose git works afterwards.
func TestRootKeepsOwner(t *testing.T) {
	dir := t.TempDir()
	if os.Geteuid() != 0 {
		t.Log("not root: what is written is the user's in any case")
		open(t, dir)
		return
	}
	must(t, os.Chmod(filepath.Dir(dir), 0o755))
	must(t, os.Chown(dir, nobody, nobody))
	r := open(t, dir)
	tree(t, dir, 100)
	snapshot(t, r, "many", "1")
	write(t, dir, map[string]string{"one": "1"})
	s := snapshot(t, r, "one", "2")
	must(t, r.Tag(t.Context(), "phase1/passed", s.Commit.Hash))
	must(t, filepath.WalkDir(filepath.Join(dir, ".git"), func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if st := info.Sys().(*syscall.Stat_t); err == nil && (st.Uid != nobody || st.Gid != nobody) {
			t.Errorf("owner of %s: got %d:%d, want %d:%d", path, st.Uid, st.Gid, nobody, nobody)
		}
		return err
	}))
}
