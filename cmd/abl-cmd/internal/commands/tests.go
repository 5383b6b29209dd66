package commands

import (
	"io/fs"
	"path/filepath"
	"strings"

	"abl/internal/safefile"
)

const (
	maxTestFiles = 2000
	maxTestBytes = 16 << 20
)

// tests returns the content of the test files below dir, up to a limit; reports
// and what a package manager put there are no tests.
func tests(dir string) []byte {
	var all []byte
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
		if data, err := safefile.Read(dir, rel, maxScript); err == nil {
			all = append(append(all, data...), '\n')
		}
		return nil
	})
	return all
}
