package gitindex

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrUnsupported marks an index that is sound but says what abl cannot keep.
var ErrUnsupported = errors.New("not supported")

const (
	headerLen = 12
	fixedLen  = 62 // of an entry, up to its path
)

// Decode reads an index of version 2, 3 or 4.
func Decode(data []byte) (*Index, error) {
	if len(data) < headerLen+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, errors.New("cannot read the index: it does not begin as one")
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if got := sha1.Sum(body); !bytes.Equal(sum, got[:]) && !bytes.Equal(sum, make([]byte, sha1.Size)) {
		return nil, errors.New("cannot read the index: its checksum is wrong")
	}
	version := binary.BigEndian.Uint32(data[4:])
	if version < 2 || version > 4 {
		return nil, fmt.Errorf("cannot read the index: version %d: %w", version, ErrUnsupported)
	}
	d := decoder{rest: body[headerLen:], version: version}
	ix, err := d.index(binary.BigEndian.Uint32(data[8:]))
	if err != nil {
		return nil, fmt.Errorf("cannot read the index: %w", err)
	}
	return ix, nil
}

type decoder struct {
	rest    []byte
	version uint32
	path    []byte // of the entry before: version 4 shares its beginning
}

func (d *decoder) index(count uint32) (*Index, error) {
	if uint64(count)*fixedLen > uint64(len(d.rest)) {
		return nil, fmt.Errorf("%d entries do not fit in it", count)
	}
	ix := &Index{Entries: make([]Entry, count)}
	for i := range ix.Entries {
		if err := d.entry(&ix.Entries[i]); err != nil {
			return nil, err
		}
		if i > 0 && ix.Entries[i-1].Path >= ix.Entries[i].Path {
			return nil, fmt.Errorf("entry %q is out of order", ix.Entries[i].Path)
		}
	}
	return ix, d.extensions(ix)
}

const (
	flagAssumeValid  = 0x8000
	flagExtended     = 0x4000
	flagStage        = 0x3000
	extSkipWorktree  = 0x4000
	extIntentToAdd   = 0x2000
	pathLenMask      = 0x0fff
	skipWorktreeHint = "a sparse checkout (%q is left out of the work tree): %w"
)

func (d *decoder) entry(e *Entry) error {
	if len(d.rest) < fixedLen {
		return errors.New("an entry is cut short")
	}
	b := d.rest
	readStat(&e.Stat, b)
	e.Mode = binary.BigEndian.Uint32(b[24:])
	copy(e.Hash[:], b[40:60])
	flags := binary.BigEndian.Uint16(b[60:])
	e.AssumeValid = flags&flagAssumeValid != 0
	used, ext := fixedLen, uint16(0)
	if flags&flagExtended != 0 {
		if d.version < 3 || len(b) < fixedLen+2 {
			return errors.New("an entry has flags of a later version")
		}
		ext = binary.BigEndian.Uint16(b[fixedLen:])
		used += 2
	}
	e.IntentToAdd = ext&extIntentToAdd != 0
	if err := d.readPath(e, used); err != nil {
		return err
	}
	return refuse(e, flags&flagStage != 0, ext&extSkipWorktree != 0)
}

func readStat(s *Stat, b []byte) {
	for i, field := range [...]*uint32{&s.CSec, &s.CNsec, &s.MSec, &s.MNsec, &s.Dev, &s.Ino} {
		*field = binary.BigEndian.Uint32(b[4*i:])
	}
	for i, field := range [...]*uint32{&s.UID, &s.GID, &s.Size} {
		*field = binary.BigEndian.Uint32(b[28+4*i:])
	}
}

// refuse names what a snapshot could not keep.
func refuse(e *Entry, unmerged, sparse bool) error {
	switch {
	case unmerged:
		return fmt.Errorf("%q is not merged yet: %w", e.Path, ErrUnsupported)
	case sparse:
		return fmt.Errorf(skipWorktreeHint, e.Path, ErrUnsupported)
	case e.Mode == ModeGitlink:
		return fmt.Errorf("%q is a submodule: %w", e.Path, ErrUnsupported)
	case e.Mode != ModeFile && e.Mode != ModeExec && e.Mode != ModeLink:
		return fmt.Errorf("%q has mode %o: %w", e.Path, e.Mode, ErrUnsupported)
	}
	return nil
}
