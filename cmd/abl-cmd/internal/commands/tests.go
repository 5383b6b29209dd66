//go:build linux

package commands

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/hostfs"
	"abl/internal/spec"
)

const (
	maxTestFiles = 2000
	maxTestBytes = 16 << 20
)

// tests returns the content of the test files below dir, up to a limit, and the
// names by which they and their tests are known; reports and what a package
// manager put there are no tests.
func tests(dir string) (all []byte, names []string) {
	files := 0
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if e.IsDir() && (e.Name() == ".git" || e.Name() == "node_modules" || strings.HasSuffix(e.Name(), "_reports")) {
			return filepath.SkipDir
		}
		if !e.Type().IsRegular() || e.Name() == failed {
			return nil
		}
		if files++; files > maxTestFiles || len(all) > maxTestBytes {
			return filepath.SkipAll
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		data, err := hostfs.Read(dir, rel, maxScript)
		if err == nil {
			all = append(append(all, data...), '\n')
		}
		names = append(names, failedspecs.NamesIn(filepath.ToSlash(rel), data)...)
		return nil
	})
	return all, names
}

// unnamed lists the contracts whose id stands in no test file. That a file names
// one is no proof that it tests it, and a suite may put the names together.
func (w workspace) unnamed() (all []spec.Contract) {
	for _, s := range w.specs {
		for _, c := range s.Contracts {
			if !regexp.MustCompile(regexp.QuoteMeta(c.ID) + `\b`).Match(w.tests) {
				all = append(all, c)
			}
		}
	}
	return all
}
