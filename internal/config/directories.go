package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// reserved is what a role must not get as, in or around its workspace.
var reserved = []string{
	".abl/specs", ".abl/logs", ".abl/reports", ".abl/images", ".abl/state.json", ".abl/lock", ".abl/config.yaml",
	".abl/project.md", ".abl/project_map.txt", ".abl/abl.config.yaml", "abl.config.yaml", "prompts", ".env", ".git",
}

func checkDirectories(l *Loaded) error {
	src, tests := l.Directories.Src, l.Directories.Tests
	for _, d := range []struct{ key, dir string }{{"directories.src", src}, {"directories.tests", tests}} {
		for _, taken := range reserved {
			if overlap(d.dir, taken) {
				return l.mistake(d.key, "give a directory of its own", "%q overlaps %s, which no role may write", d.dir, taken)
			}
		}
	}
	if overlap(src, tests) {
		return l.mistake("directories.tests", "give each role a directory of its own",
			"%q overlaps directories.src (%q)", tests, src)
	}
	return nil
}

// inside says whether dir is a clean relative path to below the project.
func inside(dir string) bool {
	return dir != "" && dir != "." && !path.IsAbs(dir) && path.Clean(dir) == dir &&
		dir != ".." && !strings.HasPrefix(dir, "../") && !strings.ContainsFunc(dir, control)
}

func control(r rune) bool { return r < ' ' || r == 0x7f }

// overlap says whether one path is the other or lies below it. Letter case is
// ignored, since some file systems ignore it.
func overlap(a, b string) bool {
	a, b = strings.ToLower(a)+"/", strings.ToLower(b)+"/"
	return strings.HasPrefix(a, b) || strings.HasPrefix(b, a)
}

// CheckDirs looks at the workspaces on the disk of project. Each may be missing,
// but nothing on the way to it may be a link or a file, and the two must not be
// the same directory under two names.
func (l *Loaded) CheckDirs(project string) error {
	var found []fs.FileInfo
	for key, dir := range byKey(map[string]string{"directories.src": l.Directories.Src, "directories.tests": l.Directories.Tests}) {
		info, at := fs.FileInfo(nil), ""
		for step := range strings.SplitSeq(dir, "/") {
			at = path.Join(at, step)
			var err error
			info, err = os.Lstat(filepath.Join(project, at))
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			switch {
			case err != nil:
				return fmt.Errorf("cannot look at %s: %w", key, err)
			case info.Mode()&fs.ModeSymlink != 0:
				return l.mistake(key, "give the real directory", "%q is a link", at)
			case !info.IsDir():
				return l.mistake(key, "", "%q is not a directory", at)
			}
		}
		found = append(found, info)
	}
	if found[0] != nil && found[1] != nil && os.SameFile(found[0], found[1]) {
		return l.mistake("directories.tests", "", "%q and %q are one directory", l.Directories.Tests, l.Directories.Src)
	}
	return nil
}
