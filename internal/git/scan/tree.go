package scan

import (
	"slices"
	"strings"

	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// node is what a folder came to.
type node struct {
	items   []item
	entries int // in it and below it
	hash    plumbing.Hash
}

// item is a file (entry) or a folder (sub) in a node; key orders it.
type item struct {
	key   string
	entry *index.Entry
	sub   *node
}

// gather waits for the folders below and makes the node's tree.
func (w *walker) gather(n *node, subs map[int]*pending, f *folder) error {
	if err := waitAll(subs); err != nil {
		return err
	}
	for i, p := range subs {
		n.items[i].sub = p.node
	}
	n.items = slices.DeleteFunc(n.items, func(it item) bool { return it.entry == nil && it.sub.entries == 0 })
	var tree object.Tree
	for _, it := range n.items {
		e := object.TreeEntry{Name: strings.TrimSuffix(it.key, "/"), Mode: filemode.Dir}
		if it.entry != nil {
			n.entries++
			e.Mode, e.Hash = it.entry.Mode, it.entry.Hash
		} else {
			n.entries += it.sub.entries
			e.Hash = it.sub.hash
		}
		tree.Entries = append(tree.Entries, e)
	}
	if w.NamesOnly || n.entries == 0 && f.depth > 0 {
		return nil // git keeps no empty folder but the root
	}
	var o plumbing.MemoryObject
	if err := tree.Encode(&o); err != nil {
		return err
	}
	if n.hash = o.Hash(); w.Store == nil || w.Trees[f.path] == n.hash {
		return nil
	}
	r, err := o.Reader()
	if err != nil {
		return err
	}
	return w.Store.Put(plumbing.TreeObject, n.hash, o.Size(), r)
}

func (w *walker) finish(root *node) *Result {
	r := &w.result
	r.Entries = make([]*index.Entry, 0, root.entries)
	r.Trees = map[string]plumbing.Hash{}
	root.flatten("", r)
	slices.SortFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	r.Cleared = state.InOrder(r.Cleared)
	slices.SortFunc(r.Marks, func(a, b Mark) int { return strings.Compare(a.Path, b.Path) })
	r.Ignored.Finish()
	return r
}

// flatten adds a folder's entries in git's order.
func (n *node) flatten(path string, r *Result) {
	r.Trees[path] = n.hash
	for _, it := range n.items {
		if it.entry != nil {
			r.Entries = append(r.Entries, it.entry)
			continue
		}
		it.sub.flatten(path+it.key, r)
	}
}
