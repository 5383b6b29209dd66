package codecommit

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/prompts"
)

// What Init writes.
var (
	//go:embed first/query.txt
	firstQuery string
	//go:embed first/build.sh
	firstBuild string
	//go:embed first/codeRollup.sh
	firstRollup string
)

// Made is a step of Init.
type Made struct {
	Do   string `json:"do"` // write, add or keep
	Path string `json:"path"`
}

// Init makes the files that a run reads. What is there stays as it is.
func (p Project) Init() (steps []Made, err error) {
	if err := os.MkdirAll(filepath.Join(p.Root, ConfigDir), 0o755); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name, text string
		perm       os.FileMode
	}{
		{p.Query, firstQuery, 0o644}, {p.Structure, prompts.CommitStructure, 0o644},
		{Script, firstBuild, 0o755}, {"codeRollup.sh", firstRollup, 0o755},
	} {
		do, err := writeNew(filepath.Join(p.Root, f.name), f.text, f.perm)
		if err != nil {
			return nil, err
		}
		steps = append(steps, Made{do, f.name})
	}
	do, err := p.ignore()
	return append(steps, Made{do, ".gitignore"}), err
}

// writeNew makes a file unless something stands there.
func writeNew(path, text string, perm os.FileMode) (do string, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if errors.Is(err, fs.ErrExist) {
		return "keep", nil
	}
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	return "write", errors.Join(err, f.Close())
}

// ignore adds to .gitignore what has to stay out of the repository.
func (p Project) ignore() (do string, err error) {
	data, err := hostfs.Read(p.Root, ".gitignore", mostText)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return "", problem("", "%w", err)
	}
	add, lines := "", strings.Split(string(data), "\n")
	for _, want := range []string{"/" + ConfigDir, "/logs", ".env"} {
		if !slices.Contains(lines, want) || want == "/"+ConfigDir && p.CheckIgnored() != nil {
			add += want + "\n"
		}
	}
	if add == "" {
		return "keep", nil
	}
	return "add", hostfs.Append(filepath.Join(p.Root, ".gitignore"), []byte(line(string(data))[len(data):]+add), 0o644)
}

// Untouched says which of Init's files a person still has to write: a run with them
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
