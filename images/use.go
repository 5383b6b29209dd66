package images

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
)

const (
	useTime   = 30 * 24 * time.Hour // after which an image that a project used may be deleted
	useFolder = "images"            // of the records, in the user's state directory
	maxRecord = 1 << 20             // bytes
)

// use is the record of the images that a project uses.
type use struct {
	Project string               `json:"project"` // its root
	Images  map[string]time.Time `json:"images"`  // the last use, by reference
}

// NoteUse records in the user's state directory that a project uses images now. Prune keeps them.
func NoteUse(dir, project string, refs []string, now time.Time) error {
	name := sha256.Sum256([]byte(project))
	folder, file := filepath.Join(dir, useFolder), hex.EncodeToString(name[:16])+".json"
	record, err := readUse(folder, file)
	if err != nil {
		record = use{} // a damaged record only lets prune delete more
	}
	fresh := use{Project: project, Images: map[string]time.Time{}}
	for ref, at := range record.Images {
		if now.Sub(at) < useTime {
			fresh.Images[ref] = at
		}
	}
	for _, ref := range refs {
		fresh.Images[ref] = now.UTC().Truncate(time.Second)
	}
	data, err := json.MarshalIndent(fresh, "", "  ")
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err == nil {
		err = hostfs.Write(filepath.Join(folder, file), append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot record which images the project uses: %w", err)
	}
	return nil
}

func readUse(folder, file string) (record use, err error) {
	data, err := hostfs.Read(folder, file, maxRecord)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	return record, err
}

// InUse returns the images that a project of this machine used in the last 30 days. A project whose
// folder is gone uses none.
func InUse(dir string, now time.Time) (map[string]bool, error) {
	folder, used := filepath.Join(dir, useFolder), map[string]bool{}
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list which images projects use: %w", err)
	}
	for _, entry := range entries {
		record, err := readUse(folder, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read which images a project uses: %q: %w", filepath.Join(folder, entry.Name()), err)
		}
		if _, err := os.Lstat(record.Project); err != nil {
			continue
		}
		for ref, at := range record.Images {
			used[ref] = used[ref] || now.Sub(at) < useTime
		}
	}
	return used, nil
}
