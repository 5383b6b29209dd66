package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
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
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("cannot find state %q: %w", path, fs.ErrNotExist)
	case err != nil:
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
	// O_NONBLOCK: opening a FIFO would wait for a writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &Damaged{Path: path, What: "it is a symbolic link"}
	case errors.Is(err, syscall.ENXIO):
		return nil, &Damaged{Path: path, What: "it is not a regular file"}
	case err != nil:
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, &Damaged{Path: path, What: "it is not a regular file"}
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read state %q: %w", path, err)
	}
	if len(data) > MaxBytes {
		return nil, &Damaged{Path: path, What: fmt.Sprintf("it is larger than %d bytes", MaxBytes)}
	}
	return data, nil
}
