package learner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
)

// publish makes code/ of a cycle: all its files and folders, without the notes.
// The old code/ stays until the new one is whole. What a person should not run
// into is left out and named.
func (h Home) publish(n int) (left []string, err error) {
	const fresh, old = ".abl/code.new", ".abl/code.old"
	if err = errors.Join(hostfs.Remove(h.Root, fresh), hostfs.Remove(h.Root, old)); err == nil {
		left, err = copyTree(h.Cycle(n), h.path(fresh))
	}
	failpoint.Here("learn.copied")
	if err == nil {
		err = errors.Join(os.MkdirAll(h.Code(), 0o755), os.Rename(h.Code(), h.path(old)))
	}
	failpoint.Here("learn.replacing")
	if err == nil {
		err = os.Rename(h.path(fresh), h.Code())
	}
	if err == nil {
		err = hostfs.Remove(h.Root, old)
	}
	if err != nil {
		err = fmt.Errorf("cannot make %s of %s: %w", h.Rel(h.Code()), h.Rel(h.Cycle(n)), err)
	}
	return left, err
}

// copyTree copies files, folders and those links that stay inside. Nothing is
// followed on the way: the source is reached through open folders alone.
func copyTree(from, to string) ([]string, error) {
	src, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	w := &sifted{ReadLinkFS: src.FS().(fs.ReadLinkFS)}
	err = os.CopyFS(to, w)
	const most = 20
	if n := len(w.left); n > most {
		w.left = append(w.left[:most], fmt.Sprintf("and %d more", n-most))
	}
	return w.left, err
}

// sifted is a cycle's folder without what code/ does not get.
type sifted struct {
	fs.ReadLinkFS
	left []string // what that is, and why
}

// ReadDir implements fs.ReadDirFS.
func (w *sifted) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.ReadLinkFS, dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		name := path.Join(dir, e.Name())
		if slices.Contains(notes, name) {
			return true
		}
		why := w.odd(name, e.Type())
		if why != "" {
			w.left = append(w.left, fmt.Sprintf("%q: %s", name, why))
		}
		return why != ""
	}), err
}

// odd says why an entry is left out, "" for one that is not. An agent may make what its
// owner may not read, and names that are no text.
func (w *sifted) odd(name string, kind fs.FileMode) string {
	var err error
	switch {
	case strings.EqualFold(path.Base(name), ".git"):
		return "git would run what its settings say"
	case kind.IsDir(), kind.IsRegular():
		var f fs.File
		if f, err = w.Open(name); err == nil {
			f.Close()
		}
	case kind&fs.ModeSymlink != 0:
		var target string
		if target, err = w.ReadLink(name); err == nil && (path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target))) {
			return "a link that leads outside"
		}
	default:
		return "neither a file nor a folder"
	}
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	return ""
}
