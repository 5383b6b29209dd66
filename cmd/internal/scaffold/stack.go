package scaffold

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// Stacks lists what --stack takes.
func Stacks() []string { return []string{"node", "python", "go", "none"} }

// languages is how project.md names what a stack is written in.
func languages() map[string]string {
	return map[string]string{"node": "JavaScript for Node.js", "python": "Python 3", "go": "Go", "none": "…"}
}

// detect tells the stack by a file that every project of its kind has, at the
// project's top or in its source directory; "" when there is none.
func detect(project fs.FS, src string) string {
	for _, mark := range []struct{ file, stack string }{
		{"package.json", "node"}, {"go.mod", "go"},
		{"pyproject.toml", "python"}, {"requirements.txt", "python"}, {"setup.py", "python"},
	} {
		for _, dir := range []string{"", src} {
			if _, err := fs.Lstat(project, path.Join(dir, mark.file)); err == nil {
				return mark.stack
			}
		}
	}
	return ""
}

// plainDir is stricter than what config.yaml allows: the name is written into
// YAML and .gitignore as it is.
func plainDir(dir string) bool {
	plain := regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`)
	if !plain.MatchString(dir) || path.Clean(dir) != dir {
		return false
	}
	first, _, _ := strings.Cut(strings.ToLower(dir), "/")
	return first != "prompts"
}
