package gitindex

import (
	"crypto/sha1"
	"encoding/binary"
)

// Encode writes an index of version 2, which every git reads. The entries
// must be in git's order and carry no intent to add, which version 2 lacks.
func Encode(ix *Index) []byte {
	b := make([]byte, 0, headerLen+len(ix.Entries)*112)
	b = append(b, "DIRC"...)
	b = binary.BigEndian.AppendUint32(b, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(ix.Entries)))
	for i := range ix.Entries {
		b = appendEntry(b, &ix.Entries[i])
	}
	if ix.Tree != nil {
		b = append(b, "TREE\x00\x00\x00\x00"...)
		start := len(b)
		b = appendTree(b, ix.Tree)
		binary.BigEndian.PutUint32(b[start-4:], uint32(len(b)-start))
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func appendEntry(b []byte, e *Entry) []byte {
	start := len(b)
	s := &e.Stat
	for _, field := range [...]uint32{
		s.CSec, s.CNsec, s.MSec, s.MNsec, s.Dev, s.Ino, e.Mode, s.UID, s.GID, s.Size,
	} {
		b = binary.BigEndian.AppendUint32(b, field)
	}
	b = append(b, e.Hash[:]...)
	flags := uint16(min(len(e.Path), pathLenMask))
	if e.AssumeValid {
		flags |= flagAssumeValid
	}
	b = binary.BigEndian.AppendUint16(b, flags)
	b = append(b, e.Path...)
	const padding = "\x00\x00\x00\x00\x00\x00\x00\x00"
	return append(b, padding[(len(b)-start)%8:]...)
}
