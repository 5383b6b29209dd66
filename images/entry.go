package images

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
)

// entry is one member of a build context: bytes at hand, a file to be read, a
// link or a folder.
type entry struct {
	name string
	mode fs.FileMode // permissions; fs.ModeDir for a folder
	link string      // target of a symbolic link
	data []byte
	path string // set: the bytes are in this file, size long
	size int64
	sum  string // hex SHA-256 of the bytes
}

func bytesEntry(name string, mode fs.FileMode, data []byte) entry {
	sum := sha256.Sum256(data)
	return entry{name: name, mode: mode, data: data, size: int64(len(data)), sum: hex.EncodeToString(sum[:])}
}

func dirEntry(name string, perm fs.FileMode) entry {
	return entry{name: name, mode: perm | fs.ModeDir}
}

func linkEntry(name, target string) entry { return entry{name: name, mode: 0o777, link: target} }

// fileEntry reads a regular file once for its hash; packing reads it again.
func fileEntry(name, path string) (entry, error) {
	f, err := open(path)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return entry{}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return entry{}, err
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	return entry{name: name, mode: mode, path: path, size: n, sum: hex.EncodeToString(h.Sum(nil))}, nil
}

// open neither follows a link nor waits for a FIFO's other end.
func open(path string) (*os.File, error) { return hostfs.Open(filepath.Dir(path), filepath.Base(path)) }

// header says nothing of times and owners, so that equal contexts are equal bytes.
func (e entry) header() *tar.Header {
	h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: e.size, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch {
	case e.mode.IsDir():
		h.Name, h.Typeflag = e.name+"/", tar.TypeDir
	case e.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	}
	return h
}

// pack writes the entries as a tar archive.
func pack(w io.Writer, files []entry) error {
	tw := tar.NewWriter(w)
	for _, f := range files {
		if err := packOne(tw, f); err != nil {
			return fmt.Errorf("cannot pack %q: %w", f.name, err)
		}
	}
	return tw.Close()
}

func packOne(tw *tar.Writer, e entry) error {
	if err := tw.WriteHeader(e.header()); err != nil {
		return err
	}
	if e.path == "" {
		_, err := io.Copy(tw, bytes.NewReader(e.data))
		return err
	}
	f, err := open(e.path)
	if err != nil {
		return err
	}
	defer f.Close()
	// A file that grew since it was hashed is cut; one that shrank is an error of the writer's.
	_, err = io.Copy(tw, io.LimitReader(f, e.size))
	return err
}
