package codecommit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"abl/internal/hostfs"
)

// Folder is the log folder of one run. Whatever is written there has no secret
// in it.
type Folder struct {
	Path  string
	clean func(string) string
}

// logPerm: prompts hold the code, which is not everybody's.
const logPerm = 0o600

// NewFolder makes a log folder that is named after the time.
func NewFolder(dir string, now time.Time, suffix string, clean func(string) string) (*Folder, error) {
	name, err := filepath.Join(dir, now.Format("2006-01-02-15-04-05")+suffix), os.MkdirAll(dir, 0o755)
	path := name
	for i := 2; err == nil; i++ {
		if err = os.Mkdir(path, 0o755); err == nil {
			return &Folder{Path: path, clean: clean}, nil
		}
		if errors.Is(err, fs.ErrExist) {
			path, err = name+"-"+strconv.Itoa(i), nil
		}
	}
	return nil, fmt.Errorf("cannot make the folder of the logs: %w", err)
}

// Name is the folder's own name.
func (f *Folder) Name() string { return filepath.Base(f.Path) }

// Put writes a file, under all of its names.
func (f *Folder) Put(text string, names ...string) error {
	data := []byte(f.clean(text))
	for i, name := range names {
		path := filepath.Join(f.Path, name)
		if i > 0 && os.Link(filepath.Join(f.Path, names[0]), path) == nil {
			continue // but on a file system without second names
		}
		if err := hostfs.Write(path, data, logPerm); err != nil {
			return err
		}
	}
	return nil
}

// Body writes a response as it was received; what is no JSON is wrapped, so that
// the file is what its name says.
func (f *Folder) Body(body []byte, names ...string) error {
	if !json.Valid(body) {
		wrapped, err := json.Marshal(map[string]string{"not_json": string(body)})
		if err != nil {
			return err
		}
		body = append(wrapped, '\n')
	}
	return f.Put(string(body), names...)
}
