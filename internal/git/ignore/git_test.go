package ignore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// glued matches two stars between a name and a slash. According to git's manual they are one star,
// but in some versions of git they match several directories, or none.
var glued = regexp.MustCompile(`[^/*\n]\*\*+/`)

// The test compares random rules and paths with git check-ignore.
func TestLikeGit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	run(t, dir, "", "init", "-q")
	for round := range 300 {
		root, sub := randomRules(rng), randomRules(rng)
		writeFile(t, dir, ".gitignore", root)
		writeFile(t, dir, "a/.gitignore", sub)
		var paths []string
		for range 150 {
			paths = append(paths, randomPath(rng))
		}
		want := map[string]bool{}
		for p := range strings.SplitSeq(run(t, dir, strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			want[p] = true
		}
		for _, p := range paths {
			got := ignoredAt(root, sub, p)
			if !got && glued.MatchString(strings.ReplaceAll(root+sub, `\`, "")) { // some versions of git leave out more
				continue
			}
			if got != want[p] {
				t.Fatalf("round %d: %q ignored: got %v, want git's %v\nroot: %q\na: %q",
					round, p, got, want[p], root, sub)
			}
		}
	}
}

// ignoredAt checks each parent directory first, as a walk does.
func ignoredAt(root, sub, path string) bool {
	rules := Exclude(nil).Below("", []byte(root))
	for i, c := range path {
		if c != '/' {
			continue
		}
		if rules.Ignored(path[:i], true) {
			return true
		}
		if path[:i] == "a" {
			rules = rules.Below("a/", []byte(sub))
		}
	}
	return rules.Ignored(path, false)
}

func randomPath(rng *rand.Rand) string {
	parts := make([]string, 1+rng.IntN(4))
	for i := range parts {
		parts[i] = string([]byte{"abc"[rng.IntN(3)]})
		for range rng.IntN(3) {
			parts[i] += string("abc-x]! [.é"[rng.IntN(12)])
		}
	}
	return strings.Join(parts, "/") + "q" // no folder of that name exists
}

// randomRules returns common and unusual rules.
func randomRules(rng *rand.Rand) string {
	pieces := []string{
		"a", "a", "b", "c", "aq", "q", "*", "*q", "?q", "a*", "b-*", "**", "[a-b]*", "[!a]*", "[^b-c]?", "[[:alpha:]]*", "x", `\!*`, `*\]*`, "#a", "a**q",
		"[-a]*", "[a-]*", "*[!-x]", "[^-]*", "[-]*", "*[--]*", "*[+--]*", "[b-c-]*", "[a-b-x]*", `[\-a]*`, `*[a\-b]?`, "*[]-]*", "*[]x]*",
		"[!]a]*", "[]", "[!]", "[a", "[", "[+-a]*", "[a/]*", "[!/]*", "*[[:punct:]]*", "*[[:blank:]-]*", `a\/b`, `b\ `, `c\\ `, "[[]*", "[[:none:]]*",
		"[[:alpha:]", "*[![:punct:]", "[[:BLANK:]]*", "[[:a-c:]]*", "*[[:space:]-c]*", `\/a`, `\/**`,
	}
	var b strings.Builder
	for range 1 + rng.IntN(5) {
		if rng.IntN(4) == 0 {
			b.WriteByte('!')
		}
		parts := make([]string, 1+rng.IntN(3))
		for i := range parts {
			parts[i] = pieces[rng.IntN(len(pieces))]
		}
		line := []string{"", "", "/", "**/"}[rng.IntN(4)] + strings.Join(parts, "/") + []string{"", "", "/", "/**", "  ", "\r"}[rng.IntN(6)]
		b.WriteString(line + "\n")
	}
	return b.String()
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if exit := cmd.ProcessState; err != nil && (exit == nil || exit.ExitCode() != 1) { // 1: none is ignored
		t.Fatal(fmt.Errorf("git %q: %w", args, err))
	}
	return string(out)
}
