package state

import (
	"maps"
	"slices"
	"strings"
)

// Seal is what a repository was like at one moment.
type Seal struct {
	Steering map[string]string // what decides what a person's git runs: path in .git to hash
	History  map[string]string // what HEAD and each ref name
}

// Changed names what two looks do not show alike, sorted.
func Changed(was, is map[string]string) []string {
	names := map[string]string{}
	maps.Copy(names, was)
	maps.Copy(names, is)
	maps.DeleteFunc(names, func(name, _ string) bool {
		before, wasThere := was[name]
		now, isThere := is[name]
		return before == now && wasThere == isThere
	})
	return slices.Sorted(maps.Keys(names))
}

// Found is what was found in a workspace after a call, besides what was committed: what
// was taken away from it, what would steer a person's tools, and what git ignores.
type Found struct {
	Cleared []Thing `json:"cleared"` // taken away: setuid bits, file capabilities, devices, sockets, FIFOs
	Control []Thing `json:"control"` // new or changed since the sweep before: files that steer an agent's CLI, an editor, CI or git
	Ignored Ignored `json:"ignored"`
	// Paths that a commit does not contain, with the reasons: a rule that ignores them, a submodule, a
	// limit. Files below an ignored folder are not listed.
	Absent []Thing `json:"absent,omitempty"`
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
// the insides of nested repositories. Up to MaxListed files it names them one by
// one, else it counts them by their top folders, "." for the workspace itself.
type Ignored struct {
	Files   int64            `json:"files"`
	Bytes   int64            `json:"bytes"`
	Listed  []string         `json:"listed,omitempty"`
	Folders map[string]int64 `json:"folders,omitempty"`
}

// MaxListed is up to how many ignored files are named.
const MaxListed = 1000

// maxFolders is how many top folders are named; the rest is one entry, "…".
const maxFolders = 1000

// Add counts a file in; a link counts as one.
func (i *Ignored) Add(path string, size int64) {
	i.Files++
	i.Bytes += size
	if i.Files <= MaxListed {
		i.Listed = append(i.Listed, path)
	}
	top, _, below := strings.Cut(path, "/")
	if !below {
		top = "."
	}
	if i.Folders == nil {
		i.Folders = map[string]int64{}
	}
	if _, named := i.Folders[top]; !named && len(i.Folders) >= maxFolders {
		top = "…"
	}
	i.Folders[top]++
}

// Finish puts what was added in order.
func (i *Ignored) Finish() {
	if i.Files > MaxListed {
		i.Listed = nil
		return
	}
	i.Folders = nil
	slices.Sort(i.Listed)
}
