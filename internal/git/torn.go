package git

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"abl/internal/git/scan"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Restore restores files of the last commit that a power failure damaged in the work tree, for the
// user uid and gid. It returns their paths. A file is damaged if it is missing, empty, all zeros,
// or the beginning of the committed content. Restore first copies the damaged file to the directory
// aside. It keeps all other changes.
func (r *Repo) Restore(ctx context.Context, aside string, uid, gid int) (paths []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	base, found, err := r.look(ctx, scan.Options{Reread: true}, nil)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, name := range differing(base.entries, found.Entries) {
		e := entryAt(base.entries, name)
		if e == nil || e.Mode != filemode.Regular && e.Mode != filemode.Executable {
			continue
		}
		torn, err := r.torn(e)
		if err == nil && torn {
			paths = append(paths, name)
			err = r.restore(root, e, aside, uid, gid)
		}
		if err != nil {
			return paths, fmt.Errorf("cannot restore %q from its commit: %w", name, err)
		}
	}
	return paths, nil
}

// torn reports whether a power failure may have damaged the file of an entry.
func (r *Repo) torn(e *index.Entry) (bool, error) {
	is, err := hostfs.Open(r.dir, e.Name)
	if errors.Is(err, hostfs.ErrNotRegular) {
		return false, nil
	}
	if errors.Is(err, hostfs.ErrAbsent) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer is.Close()
	was, size, err := r.git.Store().File(e.Hash)
	if err != nil {
		return false, err
	}
	defer was.Close()
	a, b := bufio.NewReader(is), bufio.NewReader(was)
	zeros, prefix, n := true, true, int64(0)
	for ; zeros || prefix; n++ {
		got, err := a.ReadByte()
		if err == io.EOF {
			return !prefix || n < size, nil
		}
		if err != nil {
			return false, err
		}
		want, err := b.ReadByte()
		if err != nil && err != io.EOF {
			return false, err
		}
		zeros, prefix = zeros && got == 0 && n < size, prefix && err == nil && got == want
	}
	return false, nil
}

// restore copies the current file of an entry to aside and writes the committed one.
func (r *Repo) restore(root *os.Root, e *index.Entry, aside string, uid, gid int) error {
	is, err := hostfs.Open(r.dir, e.Name)
	if err == nil {
		defer is.Close()
		to := filepath.Join(aside, e.Name)
		if err = os.MkdirAll(filepath.Dir(to), 0o755); err == nil {
			err = hostfs.Fill(to, 0o644, func(w io.Writer) error { _, err := io.Copy(w, is); return err })
		}
		if err == nil {
			err = root.Remove(e.Name)
		}
	}
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return err
	}
	if err := writeFile(r.git.Store(), root, e); err != nil {
		return err
	}
	for at := e.Name; at != "."; at = path.Dir(at) {
		if err := root.Lchown(at, uid, gid); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}
