package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"abl/orchestrator/workspace/gitobj"
)

// TreeKey stands for all that a commit holds but the named files and folders at
// its top: two commits have the same key when they differ in those alone.
func (r *Repo) TreeKey(commit string, without ...string) (string, error) {
	s := r.store()
	c, err := r.commit(s, commit)
	if err != nil {
		return "", err
	}
	items, err := r.tree(s, c.Tree)
	if err != nil {
		return "", err
	}
	var key []byte
	for _, it := range items {
		if !slices.Contains(without, it.Name) {
			key = gitobj.AppendTreeItem(key, it)
		}
	}
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:]), nil
}
