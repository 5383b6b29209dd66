package cli_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

func TestCandidates(t *testing.T) {
	cases := map[string]string{
		"":                     "clean phase images logs init man completion",
		"c":                    "clean completion",
		"images ":              "build save",
		"images s":             "save",
		"phase ":               "",
		"phase 1 --":           "--help --json --iterations --agent --progress --quiet",
		"phase --agent ":       "",
		"logs ":                "builder verifier app",
		"logs app ":            "",
		"--progress ":          "auto tty plain json",
		"phase PHASE = 3 --js": "--json",
		"completion ":          "bash zsh fish",
		"images save --f":      "--force",
	}
	for typed, want := range cases {
		_, out, _ := call(t.Context(), append([]string{"__complete"}, strings.Split(typed, " ")...)...)
		var got []string
		for _, l := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
			word, _, _ := strings.Cut(l, "\t")
			got = append(got, word)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

// In a real bash, the program gets the arguments that Tab completed.
func TestBashCompletes(t *testing.T) {
	cases := map[string]string{
		"ph\t1 --js\t":           `args=["1"] json=true`,
		"phase --progress js\t2": `progress="json"`,
		"images sa\tfile --fo\t": "images save",
		"lo\tverif\t":            "logs",
		"phase test\t":           `args=["testfile.txt"]`,
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "abl")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "testfile.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for typed, want := range cases {
		if got := typeIntoBash(t, dir, "abl "+typed); !strings.Contains(got, want) {
			t.Errorf("abl %q: the screen lacks %q:\n%s", typed, want, got)
		}
	}
}

// typeIntoBash types a line into a bash in dir and returns what follows on the screen.
func typeIntoBash(t *testing.T, dir, typed string) string {
	t.Helper()
	bash := exec.CommandContext(t.Context(), "bash", "--norc", "--noprofile", "-i")
	bash.Dir = dir
	bash.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "PS1=", "TERM=dumb", "HOME=" + dir, "INPUTRC=/dev/null", "HISTFILE=", "GORACE=atexit_sleep_ms=0"}
	term, err := pty.Start(bash)
	if err != nil {
		t.Fatal(err)
	}
	defer term.Close()
	screen := bufio.NewReader(term)
	io.WriteString(term, "bind 'set bell-style none'; source <(abl completion bash); echo re''ady\n")
	for line := ""; strings.TrimSpace(line) != "ready"; {
		if line, err = screen.ReadString('\n'); err != nil {
			t.Fatalf("bash ended: %v", err)
		}
	}
	io.WriteString(term, typed+"\nexit\n")
	var rest strings.Builder
	io.Copy(&rest, screen) // a terminal whose other end is closed gives an error
	bash.Wait()
	return rest.String()
}
