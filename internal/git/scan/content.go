package scan

import (
	"bytes"
	"errors"
	"io"
	"time"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// attempts is how often a file that changes under the reader is read.
const attempts = 3

// refusal is why a file's content is left out.
type refusal string

func (r refusal) Error() string { return string(r) }

const tooLarge = refusal("larger than the limit for one file")

// file adds the entry of a file or a link, unless its content is refused.
func (w *walker) file(path string, n *name, was *index.Entry) error {
	now := index.Entry{Name: path, Mode: w.mode(n, was)}
	setStat(&now, &n.Stat)
	if was != nil && was.Mode != now.Mode {
		was = nil
	}
	if was != nil && fresh(was, &now, w.Written) {
		w.result.Entries = append(w.result.Entries, was)
		return nil
	}
	e := new(index.Entry) // most files come no further
	*e = now
	var err error
	if !w.NamesOnly {
		err = errors.Join(w.ctx.Err(), w.read(n, e, was))
		for i := 1; i < attempts && errors.Is(err, hostfs.ErrChanged) && lookAgain(n, e); i++ {
			err = w.read(n, e, was)
		}
	}
	if errors.Is(err, hostfs.ErrChanged) {
		err = refusal("it changes while it is read")
	}
	if why := refusal(""); errors.As(err, &why) {
		w.skip(path, why.Error())
		if what := SteersPath(path); what != "" && w.Sweep {
			w.mark(path, what, Runs(what) || n.exec(), touched(n.Dir, n.Name))
		}
		return nil
	}
	if err != nil {
		return w.unreadable(path, err)
	}
	if !w.hasSettled(e.ModifiedAt) {
		e.Size = 0 // so that git and the next walk read the file again
	}
	w.result.Entries = append(w.result.Entries, e)
	return nil
}

func (w *walker) mode(n *name, was *index.Entry) filemode.FileMode {
	switch {
	case n.link():
		return filemode.Symlink
	case w.NoExec && was != nil && was.Mode != filemode.Symlink:
		return was.Mode
	case n.exec() && !w.NoExec:
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
func lookAgain(n *name, e *index.Entry) bool {
	mode := n.Stat.Mode
	if n.Look() != nil {
		return false
	}
	setStat(e, &n.Stat)
	return n.Stat.Mode == mode
}

func (w *walker) read(n *name, e, was *index.Entry) error {
	if n.link() {
		target := make([]byte, unix.PathMax)
		size, err := unix.Readlinkat(n.Dir, n.Name, target)
		if err != nil {
			return err
		}
		return w.keep(n, e, was, int64(size), bytes.NewReader(target[:size]))
	}
	f, err := n.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if size := n.Stat.Size; size > w.MaxFile {
		// Reading more than the limit can prove that a tracked file has not changed.
		if was == nil {
			return tooLarge
		}
		if tracked, err := w.SizeOf(was.Hash); err != nil || tracked != size {
			return tooLarge
		}
	}
	return w.keep(n, e, was, n.Stat.Size, f)
}

// keep names content by its hash, and hands on what is new. It is read once for its
// name and once more to be kept, however large it is.
func (w *walker) keep(n *name, e, was *index.Entry, size int64, r io.ReadSeeker) error {
	hasher := plumbing.NewHasher(plumbing.BlobObject, size)
	if n, err := io.Copy(hasher, io.LimitReader(r, size+1)); err != nil || n != size {
		return errors.Join(err, hostfs.ErrChanged)
	}
	e.Hash = hasher.Sum()
	if was != nil && was.Hash == e.Hash && !was.IntentToAdd {
		return nil
	}
	if size > w.MaxFile {
		return tooLarge
	}
	if n.regular() && isModules(n.Name) {
		return refusal("submodules are not supported")
	}
	if w.Put == nil {
		return nil
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.Put(plumbing.BlobObject, e.Hash, size, r)
}
