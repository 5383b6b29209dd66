package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// steering is what in .git decides what a person's git runs and where it
// reads and writes.
var steering = []string{"config", "config.worktree", "HEAD", "hooks", "objects/info/alternates", "objects/info/http-alternates"}

// Fingerprint hashes config, hooks, the branch that HEAD names and alternates;
// it changes when somebody has touched them.
func (r *Repo) Fingerprint() (string, error) {
	h := sha256.New()
	for _, name := range steering {
		if err := r.fingerprint(h, name); err != nil {
			return "", fmt.Errorf("cannot take the fingerprint of %q: %w", r.git.Path, err)
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

func (r *Repo) fingerprint(h hash.Hash, name string) error {
	return filepath.WalkDir(r.git.Join(name), func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v\n", path[len(r.git.Path):], info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(h, "%q\n", target)
			return err
		case info.Mode().IsRegular():
			return hashFile(h, path)
		}
		return nil
	})
}

// hashFile adds a regular file, without waiting should it be a FIFO by now.
func hashFile(h hash.Hash, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	n, err := io.Copy(h, f)
	fmt.Fprintf(h, "%d\n", n)
	return errors.Join(err, f.Close())
}
