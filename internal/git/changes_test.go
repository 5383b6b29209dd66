package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Changes reports each path with its text, or the reason why there is no text.
func TestChanges(t *testing.T) {
	dir := grown(t)
	git(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+strings.Repeat("1", 40)+",module")
	git(t, dir, "commit", "-qm", "three")
	r := cloned(t, dir, ".abl", "secret")
	start := git(t, dir, "rev-parse", "main")
	write(t, r.Dir(), map[string]string{"lib/a.js": "3", "new\x1b.js": "", "data": "\x00", "large": strings.Repeat("x\n", maxText/2+1)})
	must(t, os.Chmod(filepath.Join(r.Dir(), "lib/a.js"), 0o755))
	snapshot(t, r, "phase1/build/step-1", "p1-build-1.1")
	must(t, os.Remove(filepath.Join(r.Dir(), "link")))
	git(t, r.Dir(), "-c", "remote.abl.promisor=1", "commit", "-qam", "by hand") // without objects that the clone has not
	must(t, os.Remove(filepath.Join(r.Dir(), "lib/twin")))
	end := snapshot(t, r, "phase1/build/step-2", "p1-build-2.1").Commit.Hash
	write(t, r.Dir(), map[string]string{"more.js": "4"})
	next := snapshot(t, r, "phase2/build/step-1", "p2-build-1.1").Commit.Hash
	write(t, r.Dir(), map[string]string{"more.js": "5"})
	again := snapshot(t, r, "phase1/build/step-3", "p1-build-3.1").Commit.Hash

	show := func(from, to string) string {
		t.Helper()
		var all strings.Builder
		side := func(s *string) string {
			if s == nil {
				return "-"
			}
			return fmt.Sprintf("%q", *s)
		}
		must(t, Changes(t.Context(), r, from, to, func(c Change) error {
			text, err := c.Texts()
			fmt.Fprintf(&all, "%q %s %s %s\n", c.Path, side(text.Old), side(text.New), c.Note+text.Note)
			return err
		}))
		return all.String()
	}
	first, err := Before(t.Context(), r, end, "p1-", end)
	if err != nil || first != end {
		t.Errorf("Before with the start at its tip: got %s, %v, want %s", first, err, end)
	}
	for name, c := range map[string]struct{ tip, prefix, from, want string }{
		"a phase": {end, "p1-", start, `"data" - - not text, or larger than 4 MiB
"large" - - not text, or larger than 4 MiB
"lib/a.js" "2" "3" mode 100755, was 100644
"lib/twin" "k" - ` + `
"link" "lib/a.js" - ` + `
"new\x1b.js" - "" ` + `
`},
		"the next":          {next, "p2-", end, "\"more.js\" - \"4\" \n"},
		"a phase once more": {again, "p1-", next, "\"more.js\" \"4\" \"5\" \n"},
		"no such phase":     {next, "p3-", next, ""},
		"the whole history": {start, "p1-", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			from, err := Before(t.Context(), r, c.tip, c.prefix, "")
			must(t, err)
			if name == "the whole history" { // no call has made any of it
				if all := show("", c.tip); from != c.tip || !strings.Contains(all, `"module" - "1111`) || !strings.Contains(all, `".abl/config.yaml" - - omitted`) {
					t.Errorf("changes: got from %s\n%s\nwant from %s, with the module and the omitted config",
						from, all, c.tip)
				}
				return
			}
			if got := show(from, c.tip); from != c.from || got != c.want {
				t.Errorf("changes: got from %s, want from %s; got\n%swant\n%s", from, c.from, got, c.want)
			}
		})
	}
}
