package gitindex

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// extensions reads the cached trees and passes over what git itself may drop:
// by git's rule those are the ones whose name begins with a capital.
func (d *decoder) extensions(ix *Index) error {
	for len(d.rest) > 0 {
		if len(d.rest) < 8 {
			return errors.New("an extension is cut short")
		}
		name, size := string(d.rest[:4]), int64(binary.BigEndian.Uint32(d.rest[4:]))
		if size > int64(len(d.rest)-8) {
			return fmt.Errorf("extension %q is cut short", name)
		}
		data := d.rest[8 : 8+size]
		d.rest = d.rest[8+size:]
		switch {
		case name == "TREE":
			ix.Tree = readTree(data)
		case name[0] < 'A' || name[0] > 'Z':
			return fmt.Errorf("extension %q: %w", name, ErrUnsupported)
		}
	}
	return nil
}

const maxTreeDepth = 4096 // no path is longer

// readTree reads cached trees; nil when they are damaged, since they can be
// computed again.
func readTree(data []byte) *Tree {
	t, rest := readSubtree(data, 0)
	if len(rest) > 0 {
		return nil
	}
	return t
}

func readSubtree(data []byte, depth int) (*Tree, []byte) {
	name, rest, ok := bytes.Cut(data, []byte{0})
	line, rest, ok2 := bytes.Cut(rest, []byte{'\n'})
	count, subs, ok3 := bytes.Cut(line, []byte{' '})
	entries, err1 := strconv.Atoi(string(count))
	below, err2 := strconv.Atoi(string(subs))
	if !ok || !ok2 || !ok3 || err1 != nil || err2 != nil || depth > maxTreeDepth {
		return nil, data
	}
	t := &Tree{Name: string(name), Entries: max(entries, -1)}
	if t.Valid() {
		if len(rest) < len(t.Hash) {
			return nil, data
		}
		rest = rest[copy(t.Hash[:], rest):]
	}
	for range below {
		var s *Tree
		if s, rest = readSubtree(rest, depth+1); s == nil {
			return nil, data
		}
		t.Subs = append(t.Subs, s)
	}
	slices.SortFunc(t.Subs, func(a, b *Tree) int { return strings.Compare(a.Name, b.Name) })
	return t, rest
}

func appendTree(b []byte, t *Tree) []byte {
	b = append(append(b, t.Name...), 0)
	b = strconv.AppendInt(b, int64(t.Entries), 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, int64(len(t.Subs)), 10)
	b = append(b, '\n')
	if t.Valid() {
		b = append(b, t.Hash[:]...)
	}
	for _, s := range t.Subs {
		b = appendTree(b, s)
	}
	return b
}
