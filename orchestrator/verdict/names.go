package verdict

import (
	"path"
	"regexp"
	"strings"
)

var (
	sourceFile = regexp.MustCompile(`\.` + sources + `$`)
	titles     = regexp.MustCompile("(?m)\\b(?:it|test|describe|@test)\\b\\s*\\(?\\s*(?:'([^'\\n]{5,200})'|\"([^\"\\n]{5,200})\"|`([^`\\n]{5,200})`)")
	functions  = regexp.MustCompile(`(?m)\b(?:def|func|fn|function)\s+((?:test_|Test)\w+)`)
)

// NamesIn are the names by which a file of the Verifier's gives its tests away:
// its path in the workspace, and the tests that its content names. A file that is
// no program has none. data may be nil.
func NamesIn(file string, data []byte) (names []string) {
	if !sourceFile.MatchString(file) {
		return nil
	}
	base := path.Base(file)
	names = []string{file, base, strings.TrimSuffix(base, path.Ext(base))}
	if file == base {
		names = names[1:]
	}
	for _, re := range []*regexp.Regexp{functions, titles} {
		for _, m := range re.FindAllSubmatch(data, -1) {
			for _, name := range m[1:] {
				if len(name) > 0 {
					names = append(names, string(name))
				}
			}
		}
	}
	return names
}
