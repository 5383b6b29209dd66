package state

import (
	"maps"
	"slices"
	"strings"
)

// Seal is a fingerprint of a repository at one moment.
type Seal struct {
	Steering map[string]string // files that decide what the user's git runs: path in .git to hash
	History  map[string]string // HEAD and each ref to its target
}

// Changed returns the sorted keys whose values differ between was and is.
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

// Found is the result of the sweep of a workspace after a call, in addition to the commit.
type Found struct {
	Cleared []Thing `json:"cleared"` // removed: setuid bits, file capabilities, devices, sockets, FIFOs
	Control []Thing `json:"control"` // new or changed files that steer an agent's CLI, an editor, CI or git
	Ignored Ignored `json:"ignored"`
	// Absent lists the paths that the commit does not contain, each with the reason: an ignore
	// rule, a submodule or a limit. It does not list files below an ignored directory.
	Absent []Thing `json:"absent,omitempty"`
}

// Thing is a path in a workspace with a description.
type Thing struct {
	Path string `json:"path"`
	What string `json:"what"`
	// Runs is set if git or a shell executes or obeys the file: a repository, a hook, an
	// executable file, a setuid bit.
	Runs bool `json:"runs,omitempty"`
}

// MaxThings is the maximum number of listed things of one type.
const MaxThings = 1000

// InOrder sorts things: first those that run, then by path. It cuts the list after MaxThings.
func InOrder(all []Thing) []Thing {
	slices.SortFunc(all, func(a, b Thing) int {
		if a.Runs != b.Runs {
			return map[bool]int{true: -1, false: 1}[a.Runs]
		}
		return strings.Compare(a.Path, b.Path)
	})
	if len(all) > MaxThings {
		all = append(all[:MaxThings], Thing{Path: "…", What: "more than can be listed", Runs: all[MaxThings].Runs})
	}
	return all
}

// Ignored summarizes the files of a workspace that are in no commit: ignored files and the content
// of nested repositories. It lists up to MaxListed files. If there are more, it counts them by
// top directory, with "." for the workspace itself.
type Ignored struct {
	Files   int64            `json:"files"`
	Bytes   int64            `json:"bytes"`
	Listed  []string         `json:"listed,omitempty"`
	Folders map[string]int64 `json:"folders,omitempty"`
}

// MaxListed is the maximum number of listed ignored files.
const MaxListed = 1000

// maxFolders is the maximum number of counted top directories. The entry "…" counts the rest.
const maxFolders = 1000

// Add adds a file or a link of size bytes.
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

// Finish drops either the list or the counts and sorts the list. Call it after the last Add.
func (i *Ignored) Finish() {
	if i.Files > MaxListed {
		i.Listed = nil
		return
	}
	i.Folders = nil
	slices.Sort(i.Listed)
}
