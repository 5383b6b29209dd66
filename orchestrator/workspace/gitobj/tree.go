// Package gitobj encodes git's objects and writes them to disk, many as one
// pack, few as loose files, durable before their names are given out.
package gitobj

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"abl/orchestrator/workspace/gitindex"
)

// Hash is an object's name.
type Hash = gitindex.Hash

// TreeItem is one name in a tree object.
type TreeItem struct {
	Name string
	Mode uint32
	Hash Hash
}

// AppendTreeItem adds an item; the caller adds them in git's order, in which
// a folder's name counts as if it ended with a slash.
func AppendTreeItem(b []byte, it TreeItem) []byte {
	b = strconv.AppendUint(b, uint64(it.Mode), 8)
	b = append(b, ' ')
	b = append(b, it.Name...)
	b = append(b, 0)
	return append(b, it.Hash[:]...)
}

// ParseTree reads a tree object.
func ParseTree(data []byte) ([]TreeItem, error) {
	var items []TreeItem
	for len(data) > 0 {
		mode, rest, ok := bytes.Cut(data, []byte{' '})
		name, rest, ok2 := bytes.Cut(rest, []byte{0})
		bits, err := strconv.ParseUint(string(mode), 8, 32)
		if !ok || !ok2 || err != nil || len(rest) < len(Hash{}) {
			return nil, errors.New("cannot read a tree object: it is damaged")
		}
		if len(name) == 0 || bytes.IndexByte(name, '/') >= 0 {
			return nil, fmt.Errorf("cannot read a tree object: %q is not a name", name)
		}
		it := TreeItem{Name: string(name), Mode: uint32(bits)}
		data = rest[copy(it.Hash[:], rest):]
		items = append(items, it)
	}
	return items, nil
}
