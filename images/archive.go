package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
	"abl/internal/proc"
)

// ArchiveVar is the environment variable that names an archive of images. abl loads the archive when an
// image is missing, once for all processes of a machine.
const ArchiveVar = "ABL_IMAGES"

// ErrArchive marks an archive of images that cannot be read.
var ErrArchive = errors.New("cannot load images")

// fromArchive loads the archive that the environment names, if lacks reports that an image is missing. It
// does so once. Processes of one machine wait for each other, and the later ones find the images.
func (m *Maker) fromArchive(ctx context.Context, lacks func() (bool, error)) error {
	path := m.Env(ArchiveVar)
	if path == "" || m.loaded {
		return nil
	}
	if missing, err := lacks(); err != nil || !missing {
		return err
	}
	m.loaded = true
	dir, err := os.UserCacheDir()
	if err == nil {
		dir = filepath.Join(dir, "abl")
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return fmt.Errorf("%w of %s: %w", ErrArchive, ArchiveVar, err)
	}
	unlock, err := hostfs.Lock(filepath.Join(dir, "images.lock"))
	for errors.Is(err, hostfs.ErrHeld) { // another process loads them
		if err := proc.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		unlock, err = hostfs.Lock(filepath.Join(dir, "images.lock"))
	}
	if err != nil {
		return err
	}
	missing, err := lacks()
	if err == nil && missing {
		err = m.loadFile(ctx, path)
	}
	return errors.Join(err, unlock())
}

// loadFile loads an archive.
func (m *Maker) loadFile(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%w of %s: %w", ErrArchive, ArchiveVar, err)
	}
	defer file.Close()
	m.say("loading images from %s", path)
	_, err = m.Load(ctx, file)
	return err
}
