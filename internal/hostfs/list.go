package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Entry is a regular file in a directory.
type File struct {
	Name string
	Size int64 // bytes
	Mod  time.Time
}

// List returns the regular files of the directory name below dir ("." is dir
// itself), sorted by name; links, directories and special files are left out. A
// directory with more than max entries of any kind is ErrTooLarge.
func List(dir, name string, max int) ([]File, error) {
	entries, err := listFiles(dir, name, max)
	if err != nil {
		return nil, fmt.Errorf("cannot list %q: %w", name, err)
	}
	return entries, nil
}

func listFiles(dir, name string, max int) ([]File, error) {
	d, err := openFolder(dir, name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(max + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > max {
		return nil, fmt.Errorf("%w (more than %d entries)", ErrTooLarge, max)
	}
	var entries []File
	for _, name := range names {
		st, err := lstat(d, name)
		if errors.Is(err, ErrAbsent) {
			continue // removed since it was listed
		}
		if err != nil {
			return nil, err
		}
		if uint32(st.Mode)&unix.S_IFMT == unix.S_IFREG {
			entries = append(entries, File{name, st.Size, time.Unix(st.Mtim.Unix())})
		}
	}
	slices.SortFunc(entries, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return entries, nil
}

func openFolder(dir, name string) (*os.File, error) {
	if name == "." {
		return openAt(nil, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	parent, base, err := openParent(dir, name)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	return openAt(parent, base, unix.O_RDONLY|unix.O_DIRECTORY)
}
