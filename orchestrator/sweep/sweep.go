// Package sweep says what was found in a workspace after a call, besides what
// was committed: what was taken away from it, what would steer a person's tools,
// and what git ignores.
package sweep

import (
	"slices"
	"strings"
)

// Found is what one sweep came to.
type Found struct {
	Cleared []Thing `json:"cleared"` // taken away: setuid bits, file capabilities, devices, sockets, FIFOs
	Control []Thing `json:"control"` // new or changed since the sweep before: files that steer an agent's CLI, an editor, CI or git
	Ignored Ignored `json:"-"`       // kept in a file of its own
}

// Thing is a path in a workspace, and what it is.
type Thing struct {
	Path string `json:"path"`
	What string `json:"what"`
	// Runs says that git or a shell runs it, or does what it says: a repository, a
	// hook, an executable file, a bit that gives rights.
	Runs bool `json:"runs,omitempty"`
}

// MaxThings is how many of a kind are named.
const MaxThings = 1000

// InOrder sorts things by path, those that run before all others, and names no more
// than MaxThings of them.
func InOrder(all []Thing) []Thing {
	slices.SortFunc(all, func(a, b Thing) int {
		if a.Runs != b.Runs {
			return map[bool]int{true: -1, false: 1}[a.Runs]
		}
		return strings.Compare(a.Path, b.Path)
	})
	if len(all) > MaxThings {
		all = append(all[:MaxThings], Thing{Path: "…", What: "more than can be named", Runs: all[MaxThings].Runs})
	}
	return all
}

// Ignored is what stands in a workspace and is in no commit: ignored files, and
// the insides of nested repositories. Below MaxListed files it names them one by
// one, else their top folders.
type Ignored struct {
	Files   int64    `json:"files"`
	Bytes   int64    `json:"bytes"`
	Listed  []File   `json:"listed,omitempty"`
	Folders []Folder `json:"folders,omitempty"`
}

// MaxListed is from how many ignored files on they are summed up by folder.
const MaxListed = 1000

// MaxFolders is how many top folders are named; the rest is one entry, "…".
const MaxFolders = 1000

// File is one ignored file; a link counts as a file that holds its target.
type File struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // hexadecimal; "" when it was not read
	Unread string `json:"unread,omitempty"` // why it was not read
}

// Folder is a folder in the top of the workspace, "." for the files there. Its
// digest is the SHA-256 of a line for each folder in it, in order: the SHA-256
// of that folder's own lines ("name size sha256" for each file) and its path.
type Folder struct {
	Path   string `json:"path"`
	Files  int64  `json:"files"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Unread int64  `json:"unread,omitempty"` // files whose size stands for their content
}
