package scan

import (
	"slices"
	"strings"

	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/ignore"
)

const (
	ignoreFile = ".gitignore"
	maxRules   = 1 << 20 // bytes of one ignore file
)

// readRules adds the folder's own ignore file to the rules. Like git it reads
// a regular file only, not one behind a link.
func (w *walker) readRules(fd int, f *folder, names []name) *ignore.Rules {
	i, found := slices.BinarySearchFunc(names, ignoreFile, func(n name, key string) int {
		return strings.Compare(n.key, key)
	})
	if !found || !names[i].regular() {
		return f.rules
	}
	path := f.path + ignoreFile
	if names[i].stat.Size > maxRules {
		w.skip(path, "its rules are not applied: it is larger than 1 MiB")
		return f.rules
	}
	c := content{w: w, fd: fd, e: &names[i], entry: &gitindex.Entry{Path: path}}
	file, err := c.open()
	if err == nil {
		defer file.Close()
		var data []byte
		if data, err = readExactly(file, names[i].stat.Size); err == nil {
			return f.rules.Below(f.path, data)
		}
	}
	w.skip(path, "its rules are not applied: it cannot be read")
	return f.rules
}
