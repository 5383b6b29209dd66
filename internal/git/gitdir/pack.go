package gitdir

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

// pack is a pack file for go-git. It rejects objects for which go-git would need too much memory
// before go-git reads them.
type pack struct {
	file
	most int64 // maximum declared size of an object
	base bool  // the next object is the base of a delta, which go-git reads into memory
}

// Seek moves to an object. go-git seeks to the beginning of each object before it reads it. After a
// delta it seeks to the base in the same open file.
func (p *pack) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekStart {
		if err := p.bound(offset); err != nil {
			return 0, err
		}
	}
	return p.file.Seek(offset, whence)
}

// bound rejects the object at an offset if it is too large.
func (p *pack) bound(offset int64) error {
	in := packfile.NewScanner(io.NewSectionReader(p.File, 0, math.MaxInt64))
	h, err := in.SeekObjectHeader(offset)
	if err != nil {
		return err
	}
	size, most, what := h.Length, p.most, "an object"
	if h.Type.IsDelta() {
		if h.Length < 0 || h.Length > maxHeld {
			return p.tooLarge("a delta", h.Length, maxHeld)
		}
		if size, err = resultOf(in); err != nil {
			return err
		}
	}
	if p.base {
		most, what = min(most, maxHeld), "the base of a delta"
	}
	if size < 0 || size > most {
		return p.tooLarge(what, size, most)
	}
	p.base = h.Type.IsDelta() && size <= Streamed
	return nil
}

func (p *pack) tooLarge(what string, size, most int64) error {
	return Foreign("%s in %q has %d bytes, want at most %d: git repack -adf stores it differently", what, p.name, size,
		most)
}

// resultOf returns the declared size of the object that a delta produces.
func resultOf(in *packfile.Scanner) (int64, error) {
	content, err := in.ReadObject()
	if err != nil {
		return 0, err
	}
	defer content.Close()
	r := bufio.NewReaderSize(content, 2*binary.MaxVarintLen64)
	_, err1 := binary.ReadUvarint(r) // size of the base
	size, err2 := binary.ReadUvarint(r)
	if err := errors.Join(err1, err2); err != nil {
		return 0, fmt.Errorf("invalid delta: %w", err)
	}
	return int64(min(size, math.MaxInt64)), nil
}
