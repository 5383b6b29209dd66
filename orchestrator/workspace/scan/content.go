package scan

import (
	"context"
	"errors"
	"time"

	"abl/orchestrator/workspace/gitindex"

	"golang.org/x/sys/unix"
)

// attempts is how often a file that changes under the reader is read again.
const attempts = 3

var errChanging = errors.New("it changes while it is read")

// file makes the entry of a file or a link; nil leaves it out.
func (w *walker) file(ctx context.Context, fd int, path string, e *name, known []gitindex.Entry) (*gitindex.Entry, error) {
	mode, stat := w.mode(e, known), statOf(&e.stat)
	var was *gitindex.Entry
	if len(known) == 1 && known[0].Mode == mode {
		was = &known[0]
		if was.Fresh(stat, w.Written) {
			return was, nil
		}
	}
	entry := &gitindex.Entry{Path: path, Mode: mode, Stat: stat}
	if w.NamesOnly {
		return entry, nil
	}
	entry.AssumeValid = was != nil && was.AssumeValid
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := content{w: w, fd: fd, e: e, entry: entry, was: was}
	err := c.read()
	for i := 1; i < attempts && errors.Is(err, errChanging) && c.lookAgain(); i++ {
		err = c.read()
	}
	return w.settle(entry, err)
}

// lookAgain takes a fresh look at a file that changed; false when it has
// become something else.
func (c *content) lookAgain() bool {
	mode := c.e.stat.Mode
	if unix.Fstatat(c.fd, c.e.key, &c.e.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	c.entry.Stat = statOf(&c.e.stat)
	return c.e.stat.Mode == mode
}

// settle turns the outcome of reading into an entry, a listed path or an error.
func (w *walker) settle(entry *gitindex.Entry, err error) (*gitindex.Entry, error) {
	var why refusal
	switch {
	case err == nil:
		if !w.hasSettled(&entry.Stat) {
			entry.Unsettle()
		}
		return entry, nil
	case errors.As(err, &why):
		w.skip(entry.Path, string(why))
		return nil, nil
	case errors.Is(err, errChanging):
		w.skip(entry.Path, err.Error())
		return nil, nil
	}
	return nil, w.unreadable(entry.Path, err)
}

// coarse is how far apart two times are on file systems that keep whole seconds.
const coarse = 2 * time.Second

// hasSettled says whether a later change of the file is sure to change its time.
func (w *walker) hasSettled(s *gitindex.Stat) bool {
	changed := time.Unix(int64(s.MSec), int64(s.MNsec))
	if s.MNsec == 0 {
		changed = changed.Add(coarse)
	}
	return changed.Before(w.settled)
}

// refusal is why a file's content is left out.
type refusal string

func (r refusal) Error() string { return string(r) }

func (w *walker) mode(e *name, known []gitindex.Entry) uint32 {
	switch {
	case e.link():
		return gitindex.ModeLink
	case w.NoExec && len(known) == 1 && known[0].Mode != gitindex.ModeLink:
		return known[0].Mode
	case e.exec() && !w.NoExec:
		return gitindex.ModeExec
	}
	return gitindex.ModeFile
}

// statOf cuts what the system says to what the index keeps.
func statOf(st *unix.Stat_t) gitindex.Stat {
	return gitindex.Stat{
		CSec: uint32(st.Ctim.Sec), CNsec: uint32(st.Ctim.Nsec),
		MSec: uint32(st.Mtim.Sec), MNsec: uint32(st.Mtim.Nsec),
		Dev: uint32(st.Dev), Ino: uint32(st.Ino), UID: st.Uid, GID: st.Gid, Size: uint32(st.Size),
	}
}
