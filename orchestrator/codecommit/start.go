package codecommit

import (
	_ "embed"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/prompts"
)

// What init writes.
var (
	//go:embed first/query.txt
	firstQuery string
	//go:embed first/build.sh
	firstBuild string
	//go:embed first/codeRollup.sh
	firstRollup string
)

// FirstFiles are what a project needs of the person, as they stand before anybody has
// written into them: paths, each with its text.
func (p Profile) FirstFiles() (all [][2]string) {
	all = [][2]string{{p.Query, firstQuery}, {Script, firstBuild}, {"codeRollup.sh", firstRollup}}
	if p.Structure != "" {
		all = slices.Insert(all, 1, [2]string{p.Structure, prompts.CommitStructure})
	}
	return all
}

// Untouched says which of init's files a person still has to write: a run with them
// would cost money and come to nothing.
func (p Project) Untouched(query string, dry bool) error {
	const write = "write into it what you want changed"
	if strings.TrimSpace(query) == "" {
		return problem(write, "%s is empty", p.Query)
	}
	if query == firstQuery {
		return problem(write, "%s is as init wrote it", p.Query)
	}
	data, err := hostfs.Read(p.Root, Script, int64(len(firstBuild)))
	if err == nil && string(data) == firstBuild && !dry {
		return problem("write into it how this project is built and tested", "build.sh is as init wrote it, so no build can pass")
	}
	return nil
}
