package scan

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

const modeLink = filemode.Symlink

// whole is up to which size a file is held in memory; larger ones are read twice.
const whole = 1 << 20

// attempts is how often a file that changes under the reader is read again.
const attempts = 3

// refusal is why a file's content is left out.
type refusal string

func (r refusal) Error() string { return string(r) }

const tooLarge = refusal("larger than the limit for one file")

// content is one file whose bytes must be looked at.
type content struct {
	w     *walker
	fd    int
	e     *name
	entry *index.Entry
	was   *index.Entry // the tracked entry of the same mode, or nil
}

// file makes the entry of a file or a link; nil leaves it out.
func (w *walker) file(ctx context.Context, fd int, path string, e *name, known []*index.Entry) (*index.Entry, error) {
	c := content{w: w, fd: fd, e: e, entry: &index.Entry{Name: path, Mode: w.mode(e, known)}}
	setStat(c.entry, &e.stat)
	if tracked(known, c.entry.Mode) {
		c.was = known[0]
		if fresh(c.was, c.entry, w.Written) {
			return c.was, nil
		}
	}
	if w.NamesOnly {
		return c.entry, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	err := c.read()
	for i := 1; i < attempts && errors.Is(err, ErrChanging) && c.lookAgain(); i++ {
		err = c.read()
	}
	var why refusal
	switch {
	case err == nil:
		if !w.hasSettled(c.entry.ModifiedAt) {
			c.entry.Size = 0 // so that git and the next walk read the file again
		}
		return c.entry, nil
	case errors.As(err, &why), errors.Is(err, ErrChanging):
		w.skip(path, err.Error())
		return nil, nil
	}
	return nil, w.unreadable(path, err)
}

func tracked(known []*index.Entry, mode filemode.FileMode) bool {
	return len(known) == 1 && known[0].Mode == mode
}

func (w *walker) mode(e *name, known []*index.Entry) filemode.FileMode {
	switch {
	case e.link():
		return modeLink
	case w.NoExec && len(known) == 1 && known[0].Mode != modeLink:
		return known[0].Mode
	case e.exec() && !w.NoExec:
		return filemode.Executable
	}
	return filemode.Regular
}

// setStat cuts what the system says to what the index keeps.
func setStat(e *index.Entry, st *unix.Stat_t) {
	e.CreatedAt, e.ModifiedAt = stamp(st.Ctim.Unix()), stamp(st.Mtim.Unix())
	e.Dev, e.Inode, e.UID, e.GID, e.Size = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid, uint32(st.Size)
}

// stamp is a time as go-git reads it back: a time without all its bits, and the
// zero time for nothing.
func stamp(sec, nsec int64) time.Time {
	if uint32(sec) == 0 && nsec == 0 {
		return time.Time{}
	}
	return time.Unix(int64(uint32(sec)), nsec)
}

var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// fresh says whether a file that now looks like now must still have the content
// of an entry, given when the index was written. A file changed in the moment
// the index was written, or after, may have changed unseen. Device numbers
// change between mounts; git does not compare them either.
func fresh(e, now *index.Entry, written time.Time) bool {
	same := e.CreatedAt.Equal(now.CreatedAt) && e.ModifiedAt.Equal(now.ModifiedAt) &&
		e.Inode == now.Inode && e.UID == now.UID && e.GID == now.GID && e.Size == now.Size
	// A size of 0 marks an entry that was not settled when it was written.
	return same && !e.IntentToAdd && (e.Size != 0 || e.Hash == emptyBlob) && e.ModifiedAt.Before(written)
}

// hasSettled says whether a later change of the file is sure to change its time.
// Some file systems keep whole seconds, or two.
func (w *walker) hasSettled(changed time.Time) bool {
	if changed.Nanosecond() == 0 {
		changed = changed.Add(2 * time.Second)
	}
	return changed.Before(w.settled)
}

// lookAgain takes a fresh look at a file that changed; false when it has
// become something else.
func (c *content) lookAgain() bool {
	mode := c.e.stat.Mode
	if unix.Fstatat(c.fd, c.e.key, &c.e.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	setStat(c.entry, &c.e.stat)
	return c.e.stat.Mode == mode
}

func (c *content) read() error {
	if c.e.link() {
		target, err := readLink(c.fd, c.e.key)
		if err != nil {
			return err
		}
		return c.keep(target)
	}
	size := c.e.stat.Size
	beyond := size > c.w.MaxFile && !c.mayBeTracked(size)
	if beyond && !c.w.Sweep {
		return tooLarge
	}
	f, err := openRegular(c.fd, c.e)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.w.Sweep && c.w.disarm(f, c.entry.Name) && unix.Fstat(int(f), &c.e.stat) == nil {
		setStat(c.entry, &c.e.stat)
	}
	if beyond {
		return tooLarge
	}
	if size > whole {
		return c.stream(f, size)
	}
	data, err := readExactly(f, size)
	if err != nil {
		return err
	}
	if why := refusedContent(c.e.key, data); why != "" && !c.unchanged(plumbing.ComputeHash(plumbing.BlobObject, data)) {
		return refusal(why)
	}
	return c.keep(data)
}

// mayBeTracked says whether the tracked content has size bytes, so that
// reading more than the limit can prove that the file has not changed.
func (c *content) mayBeTracked(size int64) bool {
	if c.was == nil {
		return false
	}
	tracked, err := c.w.SizeOf(c.was.Hash)
	return err == nil && tracked == size
}

func (c *content) unchanged(h plumbing.Hash) bool {
	return c.was != nil && c.was.Hash == h && !c.was.IntentToAdd
}

func (c *content) keep(data []byte) error {
	c.entry.Hash = plumbing.ComputeHash(plumbing.BlobObject, data)
	if c.w.Store == nil || c.unchanged(c.entry.Hash) {
		return nil
	}
	return c.w.Store.Put(plumbing.BlobObject, c.entry.Hash, int64(len(data)), bytes.NewReader(data))
}

// stream reads a large file twice: once for its name, and once more to keep
// it when it is new.
func (c *content) stream(f regular, size int64) error {
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	if n, err := io.Copy(hasher, io.LimitReader(f, size+1)); err != nil || n != size {
		return errors.Join(err, ErrChanging)
	}
	c.entry.Hash = hasher.Sum()
	switch {
	case c.unchanged(c.entry.Hash):
		return nil
	case size > c.w.MaxFile:
		return tooLarge
	case readByGit(c.e.key):
		return refusal("too large for a file that git reads itself")
	case c.w.Store == nil:
		return nil
	}
	if _, err := unix.Seek(int(f), 0, io.SeekStart); err != nil {
		return err
	}
	return c.w.Store.Put(plumbing.BlobObject, c.entry.Hash, size, f)
}
