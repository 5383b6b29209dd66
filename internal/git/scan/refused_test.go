package scan

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRefused(t *testing.T) {
	forbidden := []string{
		".git", ".GIT", ".Git", ".git.", ".git ", ".git . .", ".git::$INDEX_ALLOCATION", ".git:x", "git~1", "GIT~1", "git~1 .",
		`.git\x`, `a\.git`, `a\b\git~1`, ".g\u200cit", "\ufeff.git", ".GI\u202et", ".git\u200d", ".git\xff",
	}
	for _, name := range forbidden {
		if refusedName(name, false) == "" {
			t.Errorf("refusedName(%q, false): got no reason, want one", name)
		}
	}
	fine := []string{
		"git", ".gitignore", ".gitx", "git~2", "git~", "git~10", "x.git", ".g", "...", "..foo", "-rf", "aux.c", "COM1", "a:b",
		`back\slash`, "x\ny", "\x01", "\xff", "ü", ".gitmodules", "gi7eba~1", "maker", "g", ".g\u200dot",
	}
	for _, name := range fine {
		if why := refusedName(name, false); why != "" {
			t.Errorf("refusedName(%q, false): got %q, want no reason", name, why)
		}
	}
}

func TestRefusedLinks(t *testing.T) {
	for _, name := range []string{
		".gitmodules", ".GITMODULES", ".gitmodules .", "gitmod~1", "GITMOD~4", "gi7eba~1", "GI7EB~11", "~1000000",
		".gitignore", ".gitattributes", ".mailmap", "gi250a~9", `x\.gitmodules`, ".gitmod\u200cules", ".gitmodules:$DATA",
	} {
		if refusedName(name, true) == "" {
			t.Errorf("refusedName(%q, true): got no reason, want one", name)
		}
	}
	for _, name := range []string{"gitmodules", "gitmod~5", "gi7eba", "link", ".gitmodule", "~0000001", "mail",
		"~1", "gi~2", "gi7eb~1", "gi7eba~10", "ig7eba~1", "~100000", "ma~1"} {
		if why := refusedName(name, true); why != "" {
			t.Errorf("refusedName(%q, true): got %q, want no reason", name, why)
		}
	}
}

// Git rejects these names only for links, not for the directories above them.
func TestRefusedChecksOnlyTheLastElementForLinks(t *testing.T) {
	for path, want := range map[string]bool{
		".gitmodules/x.gitmodules": false, "a/.gitmodules": true, ".mailmap/.mailmap": true, "a/.git/b": true,
	} {
		if why := Refused(path, true); (why != "") != want {
			t.Errorf("Refused(%q, true): got %q, want a reason: %t", path, why, want)
		}
	}
}

func TestIsModules(t *testing.T) {
	for name, want := range map[string]bool{".gitattributes": false, "other": false, "~1": false, "gi~2": false, "gi7~1": false, ".gitmodules": true, "gi7eba~1": true, "GI7~1000": true, "~1234567": true, "gi": false} {
		if isModules(name) != want {
			t.Errorf("isModules(%q): got %t, want %t", name, !want, want)
		}
	}
}

// A refused name is refused in any case and with trailing dots and spaces, which NTFS drops.
func FuzzRefused(f *testing.F) {
	for _, s := range []string{".git", "git~1", "a", `x\.git`, ".g\u200cit", ".git\xff", "maildir"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" {
			return
		}
		git := reads(s, gitItself)
		// ToUpper makes a character of a broken byte, at which HFS+ ends a name.
		if git && utf8.ValidString(s) && refusedName(strings.ToUpper(s)+" . ", false) == "" && !strings.ContainsAny(s, "/\x00:\\") {
			t.Errorf("refusedName of a variant of %q: got no reason, want one", s)
		}
		if harmless := refusedName(s, true) == ""; harmless && (git || isModules(s)) {
			t.Errorf("refusedName(%q, true): got no reason, want one", s)
		}
	})
}
