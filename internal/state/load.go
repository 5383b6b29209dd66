package state

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"abl/internal/hostfs"
)

// Damaged says that a state file cannot be trusted. abl never overwrites one:
// a person must decide (exit code 9).
type Damaged struct {
	Path string
	What string // what is wrong with it
}

// Error names the file, what is wrong and what to do.
func (d *Damaged) Error() string {
	return fmt.Sprintf("cannot use state %q: %s: restore it from a backup, or move it away to begin anew", d.Path, d.What)
}

// Newer says that a state file comes from a later abl.
type Newer struct {
	Path  string
	Has   int // version of the file
	Knows int // version of this abl
}

// Error names both versions and what to do.
func (n *Newer) Error() string {
	return fmt.Sprintf("cannot use state %q: it has version %d, this abl knows %d: update abl", n.Path, n.Has, n.Knows)
}

// Load reads a state file. Without one the error is fs.ErrNotExist; a file that
// is not a whole, valid state is a *Damaged or a *Newer. Links are not followed.
func Load(path string) (*File, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := decode(data, Version, steps)
	var newer *Newer
	switch {
	case errors.As(err, &newer):
		newer.Path = path
		return nil, newer
	case err != nil:
		return nil, &Damaged{Path: path, What: err.Error()}
	}
	return f, nil
}

func read(path string) ([]byte, error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), MaxBytes)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return nil, fmt.Errorf("cannot find state %q: %w", path, fs.ErrNotExist)
	case errors.Is(err, hostfs.ErrNotRegular):
		return nil, &Damaged{Path: path, What: "it is not a regular file, or reached over a link"}
	case errors.Is(err, hostfs.ErrTooLarge):
		return nil, &Damaged{Path: path, What: fmt.Sprintf("it is larger than %d bytes", MaxBytes)}
	case errors.Is(err, hostfs.ErrChanged):
		return nil, &Damaged{Path: path, What: "it changed while it was read"}
	case err != nil:
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	return data, nil
}
