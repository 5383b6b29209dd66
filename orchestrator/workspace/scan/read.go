package scan

import (
	"errors"
	"io"

	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitname"
	"abl/orchestrator/workspace/gitobj"

	"golang.org/x/sys/unix"
)

// whole is up to which size a file is held in memory; larger ones are streamed.
const whole = 1 << 20

// content is one file whose bytes must be looked at.
type content struct {
	w     *walker
	fd    int
	e     *name
	entry *gitindex.Entry
	was   *gitindex.Entry // the tracked entry of the same mode, or nil
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
	tooLarge := size > c.w.MaxFile && !c.mayBeTracked(size)
	if tooLarge && !c.w.Sweep {
		return refusal("larger than the limit for one file")
	}
	f, err := c.open()
	if err != nil {
		return err
	}
	defer f.Close()
	if c.w.Sweep {
		c.disarm(f)
	}
	if tooLarge {
		return refusal("larger than the limit for one file")
	}
	if size > whole {
		return c.stream(f, size)
	}
	data, err := readExactly(f, size)
	if err != nil {
		return err
	}
	if why := gitname.RefusedContent(c.e.key, data); why != "" && !c.unchanged(gitobj.Name(gitobj.Blob, data)) {
		return refusal(why)
	}
	return c.keep(data)
}

// mayBeTracked says whether the tracked content has size bytes, so that
// reading more than the limit can prove that the file has not changed.
func (c *content) mayBeTracked(size int64) bool {
	if c.was == nil || c.w.SizeOf == nil {
		return false
	}
	tracked, err := c.w.SizeOf(c.was.Hash)
	return err == nil && tracked == size
}

// open opens the regular file that was looked at and nothing else: without
// following a link, and without waiting should it be a FIFO by now.
func (c *content) open() (regular, error) {
	return openRegular(c.fd, c.e)
}

func openRegular(at int, e *name) (regular, error) {
	fd, err := unix.Openat(at, e.key, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != e.stat.Ino || st.Dev != e.stat.Dev || st.Mode != e.stat.Mode {
		unix.Close(fd)
		return 0, errors.Join(err, errChanging)
	}
	return regular(fd), nil
}

func (c *content) unchanged(h gitindex.Hash) bool {
	return c.was != nil && c.was.Hash == h && !c.was.IntentToAdd
}

func (c *content) keep(data []byte) error {
	c.entry.Hash = gitobj.Name(gitobj.Blob, data)
	if c.w.Store == nil || c.unchanged(c.entry.Hash) {
		return nil
	}
	return c.w.Store.Put(gitobj.Blob, c.entry.Hash, data)
}

// stream reads a large file twice: once for its name, and once more to keep
// it when it is new.
func (c *content) stream(f regular, size int64) error {
	namer := gitobj.NewNamer(gitobj.Blob, size)
	if n, err := io.Copy(namer, io.LimitReader(f, size+1)); err != nil || n != size {
		return errors.Join(err, errChanging)
	}
	c.entry.Hash = gitobj.Sum(namer)
	if c.unchanged(c.entry.Hash) {
		return nil
	}
	if size > c.w.MaxFile {
		return refusal("larger than the limit for one file")
	}
	if gitname.Checked(c.e.key) {
		return refusal("too large for a file that git reads itself")
	}
	if c.w.Store == nil {
		return nil
	}
	if _, err := unix.Seek(int(f), 0, io.SeekStart); err != nil {
		return err
	}
	err := c.w.Store.PutStream(gitobj.Blob, c.entry.Hash, size, f)
	if errors.Is(err, gitobj.ErrMoved) {
		return errChanging
	}
	return err
}
