package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"abl/internal/git/scan"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Restore restores files of the last commit that a power failure damaged in the work tree, for the
// user uid and gid. It returns their paths. A file is damaged if it is missing, empty, all zeros,
// or the beginning of the committed content. Restore first copies the damaged file to the directory
// aside. It keeps all other changes.
func (r *Repo) Restore(ctx context.Context, aside string, uid, gid int) (paths []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.look(ctx, scan.Options{Reread: true}, nil)
	if err != nil {
		return nil, err
	}
	var to []*index.Entry
	for _, name := range differing(w.base.entries, w.Entries) {
		e := entryAt(w.base.entries, name)
		if !isFile(e) {
			continue
		}
		torn, err := r.torn(e)
		if err == nil && torn {
			paths, to = append(paths, name), append(to, e)
			err = r.keepAside(name, aside)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot restore %q from its commit: %w", name, err)
		}
	}
	return paths, r.rewrite(nil, to, uid, gid)
}

// torn reports whether a power failure may have damaged the file of an entry.
func (r *Repo) torn(e *index.Entry) (bool, error) {
	was, size, err := r.git.Store().File(e.Hash)
	if err != nil {
		return false, err
	}
	defer was.Close()
	data, err := hostfs.Read(r.dir, e.Name, size)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return true, nil
	case errors.Is(err, hostfs.ErrNotRegular), errors.Is(err, hostfs.ErrTooLarge):
		return false, nil
	case err != nil:
		return false, err
	}
	head := make([]byte, len(data))
	if _, err := io.ReadFull(was, head); err != nil {
		return false, err
	}
	if bytes.Equal(data, head) {
		return int64(len(data)) < size, nil
	}
	return len(bytes.Trim(data, "\x00")) == 0, nil
}

// keepAside copies a file of the work tree, if it exists, to the directory aside.
func (r *Repo) keepAside(name, aside string) error {
	is, err := hostfs.Open(r.dir, name)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	defer is.Close()
	to := filepath.Join(aside, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return hostfs.Fill(to, 0o644, func(w io.Writer) error { _, err := io.Copy(w, is); return err })
}
