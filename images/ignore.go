package images

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// ignore is what a .dockerignore says; of two rules that match, the later one holds.
type ignore []ignoreRule

type ignoreRule struct {
	match *regexp.Regexp
	keep  bool
}

func readIgnore(name string) (ignore, error) {
	f, err := openRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDockerfile))
	if err != nil {
		return nil, err
	}
	return parseIgnore(string(text))
}

func parseIgnore(text string) (ignore, error) {
	var rules ignore
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, keep := strings.CutPrefix(line, "!")
		pattern = strings.TrimPrefix(path.Clean("/"+strings.TrimSpace(pattern)), "/")
		if pattern == "" {
			return nil, fmt.Errorf(".dockerignore line %d: %q names nothing", i+1, line)
		}
		match, err := regexp.Compile(ignorePattern(pattern))
		if err != nil {
			return nil, fmt.Errorf(".dockerignore line %d: cannot read the pattern %q", i+1, line)
		}
		rules = append(rules, ignoreRule{match: match, keep: keep})
	}
	return rules, nil
}

// ignorePattern turns a pattern into an expression that matches the name and
// everything below it. ** stands for any number of folders, * and ? stay in one.
func ignorePattern(pattern string) string {
	b := "^"
	for i := 0; i < len(pattern); {
		switch rest := pattern[i:]; {
		case strings.HasPrefix(rest, "**/"):
			b, i = b+"(?:.*/)?", i+3
		case strings.HasPrefix(rest, "**"):
			b, i = b+".*", i+2
		case rest[0] == '*':
			b, i = b+"[^/]*", i+1
		case rest[0] == '?':
			b, i = b+"[^/]", i+1
		default:
			b, i = b+literal(rest), i+1
		}
	}
	return b + "(?:/.*)?$"
}

// literal is the first byte as itself; a byte that is no character of its own
// is written so that the expression stays valid.
func literal(s string) string {
	if s[0] >= 0x80 {
		return s[:1]
	}
	return regexp.QuoteMeta(s[:1])
}

func (ig ignore) ignores(name string) bool {
	out := false
	for _, r := range ig {
		if r.match.MatchString(name) {
			out = !r.keep
		}
	}
	return out
}
