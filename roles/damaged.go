package roles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/internal/hostfs"
)

// Damaged is an error about a file of a record that abl can no longer read.
type Damaged struct {
	Path string
	What string
}

// Error returns the file's name and its defect.
func (d *Damaged) Error() string { return fmt.Sprintf("cannot read the record %q: %s", d.Path, d.What) }

// SetAside renames the file to NAME.damaged, or NAME.damaged-2 and so on, and returns the new name.
func (d *Damaged) SetAside() (name string, err error) {
	for n := 1; ; n++ {
		to := d.Path + ".damaged"
		if n > 1 {
			to += fmt.Sprint("-", n)
		}
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err = os.Rename(d.Path, to); err == nil {
			err = hostfs.SyncDir(filepath.Dir(to))
		}
		return filepath.Base(to), err
	}
}

// maxJSON is the largest size of a JSON file of a record, in bytes.
const maxJSON = 64 << 20

// readJSON decodes a file of a record. It returns false if the file does not exist.
func readJSON(path string, into any) (bool, error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxJSON)
	for errors.Is(err, hostfs.ErrChanged) { // another part of abl replaced it during the read
		data, err = hostfs.Read(filepath.Dir(path), filepath.Base(path), maxJSON)
	}
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return false, nil
	case errors.Is(err, hostfs.ErrNotRegular), errors.Is(err, hostfs.ErrTooLarge):
		return false, &Damaged{path, err.Error()}
	case err != nil:
		return false, fmt.Errorf("cannot read the record of a call: %w", err)
	}
	switch err := json.Unmarshal(data, into); {
	case err != nil:
		return false, &Damaged{path, fmt.Sprintf("its %d bytes are not a record of abl: %v", len(data), err)}
	case string(bytes.TrimSpace(data)) == "null":
		return false, &Damaged{path, "it has no content"}
	}
	return true, nil
}
