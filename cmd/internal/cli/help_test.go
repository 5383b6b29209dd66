package cli_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/exit"
)

var update = flag.Bool("update", false, "write the golden files")

func TestHelp(t *testing.T) {
	cases := map[string]string{
		"program": "--help",
		"phase":   "phase --help",
		"images":  "images --help",
		"save":    "images save -h",
		"codes":   "help exit-codes",
		"topic":   "help environment",
	}
	for name, args := range cases {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := call(t.Context(), strings.Fields(args)...)
			if code != 0 || stderr != "" {
				t.Errorf("abl %s: got exit code %d, stderr %q, want 0 and none", args, code, stderr)
			}
			path := filepath.Join("testdata", name+".help")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("abl %s: got\n%s\nwant the text of %s (-update writes it)", args, got, path)
			}
			checkHelp(t, args, got)
		})
	}
}

// One topic shows the exit codes, and the program's help names it.
func TestExitCodesAreATopic(t *testing.T) {
	_, text, _ := call(t.Context(), "help", "exit-codes")
	text = strings.Join(strings.Fields(text), " ")
	for _, e := range exit.Entries() {
		if want := fmt.Sprintf("%d %s", e.Code, e.Meaning); !strings.Contains(text, want) {
			t.Errorf("abl help exit-codes: got no %q, want it", want)
		}
	}
	if _, root, _ := call(t.Context(), "--help"); !strings.Contains(root, "\n  exit-codes ") {
		t.Errorf("abl --help: got\n%s\nwant the topic exit-codes in it", root)
	}
	if _, one, _ := call(t.Context(), "phase", "--help"); strings.Contains(one, "Exit codes:") {
		t.Errorf("abl phase --help: got\n%s\nwant no exit codes, which all commands share", one)
	}
}

// checkHelp checks the rules for every help text.
func checkHelp(t *testing.T, args, text string) {
	t.Helper()
	for _, l := range strings.Split(text, "\n") {
		if len(l) > 80 || strings.TrimRight(l, " ") != l {
			t.Errorf("abl %s: got a line of %d columns, %q, want at most 80 without a blank at the end",
				args, len(l), l)
		}
	}
}

func TestHelpByOtherWays(t *testing.T) {
	same := [][2]string{
		{"--help", ""},
		{"--help", "help"},
		{"--help", "-h"},
		{"phase --help", "help phase"},
		{"phase --help", "help p"},
		{"phase --help", "phase 1 2 3 --help"},
		{"phase --help", "--help phase --what"},
		{"images save --help", "help images save"},
	}
	for _, s := range same {
		_, want, _ := call(t.Context(), strings.Fields(s[0])...)
		code, got, _ := call(t.Context(), strings.Fields(s[1])...)
		if code != 0 || got != want {
			t.Errorf("abl %s: got exit code %d with\n%s\nwant 0 with the output of abl %s:\n%s",
				s[1], code, got, s[0], want)
		}
	}
}
