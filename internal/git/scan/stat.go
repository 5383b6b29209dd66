package scan

import (
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// setStat copies a status to an entry with the precision of the index.
func setStat(e *index.Entry, st *unix.Stat_t) {
	e.CreatedAt, e.ModifiedAt = stamp(st.Ctim.Unix()), stamp(st.Mtim.Unix())
	e.Dev, e.Inode, e.UID, e.GID, e.Size = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid, uint32(st.Size)
}

// stamp returns a time as go-git reads it from the index: with 32 bits of seconds, and the zero
// time for 0.
func stamp(sec, nsec int64) time.Time {
	if uint32(sec) == 0 && nsec == 0 {
		return time.Time{}
	}
	return time.Unix(int64(uint32(sec)), nsec)
}

var emptyBlob = plumbing.ComputeHash(plumbing.BlobObject, nil)

// fresh reports whether a file with the status now must still have the content of the entry e of an
// index written at written. A file that changed at or after that moment may have changed unnoticed.
// fresh ignores device numbers, like git, because they change between mounts.
func fresh(e, now *index.Entry, written time.Time) bool {
	// A size of 0 marks an entry that was not settled.
	return sameStat(e, now) && !e.IntentToAdd && (e.Size != 0 || e.Hash == emptyBlob) && e.ModifiedAt.Before(written)
}

func sameStat(e, now *index.Entry) bool {
	return e.CreatedAt.Equal(now.CreatedAt) && e.ModifiedAt.Equal(now.ModifiedAt) &&
		e.Inode == now.Inode && e.UID == now.UID && e.GID == now.GID && e.Size == now.Size
}

// known reports whether an earlier walk read the same content in a file with the status now as is
// tracked. It sets the hash of now. A role can set a file's size and modification time, but not its
// change time.
func (w *walker) known(now, tracked *index.Entry) bool {
	if w.Read == nil || tracked == nil || tracked.IntentToAdd {
		return false
	}
	e := entryAt(w.Read.read, now.Name)
	if e == nil || e.Hash != tracked.Hash || e.Mode != now.Mode || !sameStat(e, now) {
		return false
	}
	now.Hash = e.Hash
	return true
}

// tick is more than the precision of the clock with which file systems set times.
const tick = 20 * time.Millisecond

// settled reports whether a change of a file after by is certain to set another time than changed.
// Some file systems store whole or even seconds only.
func settled(changed, by time.Time) bool {
	if changed.Nanosecond() == 0 {
		changed = changed.Add(2 * time.Second)
	}
	return changed.Before(by)
}
