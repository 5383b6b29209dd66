package hostfs

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// Write writes dir as a folder of the name as, with owners and modes, without
// the entries of the top folder named in without.
func Tar(w io.Writer, as, dir string, without ...string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("cannot copy %q: %w", dir, err)
	}
	defer root.Close()
	skip := map[string]bool{}
	for _, name := range without {
		skip[name] = true
	}
	t := tar.NewWriter(w)
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case skip[name] && d.IsDir():
			return fs.SkipDir
		case skip[name]:
			return nil
		}
		return tarEntry(t, root, name, path.Join(as, name))
	})
	if err != nil {
		return fmt.Errorf("cannot copy %q: %w", dir, err)
	}
	return t.Close()
}

func tarEntry(t *tar.Writer, root *os.Root, name, as string) error {
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
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return nil
	}
	return tarContent(t, root, name, fi)
}

// content copies exactly as much as the header promised.
func tarContent(t *tar.Writer, root *os.Root, name string, fi fs.FileInfo) error {
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
	_, err = io.CopyN(t, f, fi.Size())
	return err
}
