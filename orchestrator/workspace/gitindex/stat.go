package gitindex

import "time"

// Stat is what the file system said about a file, cut to 32 bits as git cuts it.
type Stat struct {
	CSec, CNsec, MSec, MNsec, Dev, Ino, UID, GID, Size uint32
}

var emptyBlob = Hash{
	0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b,
	0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4, 0x8c, 0x53, 0x91,
}

// Fresh says whether a file that now looks like now must still have the
// entry's content, given when the index was written. A file changed in the
// moment the index was written, or after, may have changed unseen.
func (e *Entry) Fresh(now Stat, written time.Time) bool {
	was := e.Stat
	was.Dev = now.Dev // device numbers change between mounts; git does not compare them either
	if was != now || e.IntentToAdd {
		return false
	}
	if now.Size == 0 && e.Hash != emptyBlob {
		return false // a size of 0 marks an entry that was not settled when it was written
	}
	return time.Unix(int64(now.MSec), int64(now.MNsec)).Before(written)
}

// Unsettle marks an entry whose file may change without a trace in its times,
// so that git and the next snapshot read the file again.
func (e *Entry) Unsettle() { e.Stat.Size = 0 }
