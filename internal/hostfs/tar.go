package hostfs

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// Tar writes dir as a tar archive with the top directory as, with owners and modes. It omits the
// top-level entries in without.
func Tar(w io.Writer, as, dir string, without ...string) error {
	return TarSome(w, as, dir, func(name string, _ *tar.Header) bool { return !slices.Contains(without, name) })
}

// TarSome is like Tar, but writes only the entries for which take returns true. take may change
// their headers. If it returns false for a directory, its content is omitted, too.
func TarSome(w io.Writer, as, dir string, take func(name string, h *tar.Header) bool) (err error) {
	defer wrapError(&err, "copy", dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	t := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return tarEntry(t, root, name, path.Join(as, name), take)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func tarEntry(t *tar.Writer, root *os.Root, name, as string, take func(string, *tar.Header) bool) error {
	fi, err := root.Lstat(name)
	if err != nil {
		return err
	}
	var link string
	switch {
	case fi.Mode()&fs.ModeSymlink != 0:
		if link, err = root.Readlink(name); err != nil {
			return err
		}
	case !fi.IsDir() && !fi.Mode().IsRegular():
		return nil
	}
	h, err := tar.FileInfoHeader(fi, link)
	if err != nil {
		return err
	}
	h.Name, h.Uname, h.Gname = as, "", ""
	if fi.IsDir() {
		h.Name += "/"
	}
	if !take(name, h) {
		if fi.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if err := t.WriteHeader(h); err != nil || !fi.Mode().IsRegular() {
		return err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	now, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(now, fi) {
		return fmt.Errorf("%q changed while it was copied", name)
	}
	_, err = io.CopyN(t, f, fi.Size()) // the size in the header
	return err
}
