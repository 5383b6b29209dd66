package scan

import (
	"slices"
	"strings"

	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitobj"
)

// gather waits for the folders below and names the node's tree.
func (w *walker) gather(n *node, subs map[int]*pending, f *folder) error {
	if err := waitAll(subs); err != nil {
		return err
	}
	for i, p := range subs {
		n.items[i].sub = p.node
		n.entries += p.node.entries
		n.same = n.same && p.node.same
	}
	n.items = slices.DeleteFunc(n.items, func(it item) bool { return it.entry == nil && it.sub.entries == 0 })
	if w.NamesOnly || f.ignored && n.entries == 0 {
		return nil
	}
	if n.same && f.cached.Valid() && f.cached.Entries == n.entries {
		n.hash = f.cached.Hash
		return nil
	}
	data := n.encode()
	n.hash = gitobj.Name(gitobj.TreeKind, data)
	if w.Store == nil || n.entries == 0 && f.depth > 0 {
		return nil // git keeps no empty folder but the root
	}
	return w.Store.Put(gitobj.TreeKind, n.hash, data)
}

func (n *node) encode() []byte {
	var b []byte
	for _, it := range n.items {
		t := gitobj.TreeItem{Name: strings.TrimSuffix(it.key, "/"), Mode: gitindex.ModeTree}
		if it.entry != nil {
			t.Mode, t.Hash = it.entry.Mode, it.entry.Hash
		} else {
			t.Hash = it.sub.hash
		}
		b = gitobj.AppendTreeItem(b, t)
	}
	return b
}

func (w *walker) result(root *node) *Result {
	r := &Result{
		Entries: make([]gitindex.Entry, 0, root.entries), Skipped: w.skipped,
		Cleared: w.cleared, Marks: w.marks, Ignored: w.ignored,
	}
	slices.SortFunc(r.Cleared, func(a, b sweep.Thing) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(r.Marks, func(a, b Mark) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(r.Ignored, func(a, b Ignored) int { return strings.Compare(a.Folder, b.Folder) })
	slices.SortFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	r.Tree = root.flatten("", r)
	if w.NamesOnly {
		r.Tree = nil
	}
	return r
}

// flatten appends a folder's entries in git's order.
func (n *node) flatten(name string, r *Result) *gitindex.Tree {
	t := &gitindex.Tree{Name: name, Entries: n.entries, Hash: n.hash}
	for _, it := range n.items {
		if it.entry != nil {
			r.Entries = append(r.Entries, *it.entry)
			continue
		}
		t.Subs = append(t.Subs, it.sub.flatten(strings.TrimSuffix(it.key, "/"), r))
	}
	slices.SortFunc(t.Subs, func(a, b *gitindex.Tree) int { return strings.Compare(a.Name, b.Name) })
	return t
}
