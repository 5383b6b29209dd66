// Package gitindex reads and writes git's index file: which paths are
// tracked, as what, and what the file system said about each when it was last
// known to equal its object.
package gitindex

import (
	"fmt"
	"slices"
	"strings"
)

// Hash is an object's name.
type Hash [20]byte

func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// IsZero says whether no hash was given.
func (h Hash) IsZero() bool { return h == Hash{} }

// Modes that an entry or a tree may have.
const (
	ModeFile    = 0o100644
	ModeExec    = 0o100755
	ModeLink    = 0o120000
	ModeTree    = 0o040000
	ModeGitlink = 0o160000
)

// Entry is one tracked path.
type Entry struct {
	Path string
	Hash Hash
	Mode uint32
	Stat Stat

	AssumeValid bool // the person's mark; kept, but a snapshot looks all the same
	IntentToAdd bool // git add -N: the path is tracked, its content is not
}

// Tree is one folder of the cached trees (the TREE extension), which spare
// git from computing trees that have not changed.
type Tree struct {
	Name    string
	Entries int // index entries below it, -1 when the hash is not known
	Hash    Hash
	Subs    []*Tree // by name
}

// Sub finds a folder directly below; nil when there is none.
func (t *Tree) Sub(name string) *Tree {
	if t == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(t.Subs, name, func(s *Tree, name string) int {
		return strings.Compare(s.Name, name)
	})
	if !found {
		return nil
	}
	return t.Subs[i]
}

// Valid says whether the hash of the folder is known.
func (t *Tree) Valid() bool { return t != nil && t.Entries >= 0 }

// Index is a whole index file, entries in git's order.
type Index struct {
	Entries []Entry
	Tree    *Tree // nil when the file has none
}
