package phase

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/creack/pty"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// canary is the key in .env. Agents have it in two halves, so that no file of abl contains it
// before they print it.
const canary = `sk-ca$nary"4711+abcdeXYZ`

// spelled returns the forms of the canary that programs print. Of base64, only the part that does
// not depend on the neighbouring text is recognized.
func spelled() []string {
	std := base64.RawStdEncoding.EncodeToString
	quoted, _ := json.Marshal(canary)
	return []string{
		canary, string(quoted[1 : len(quoted)-1]), url.QueryEscape(canary), hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
		std([]byte(canary)), std([]byte("x" + canary))[3:30], std([]byte("xx" +
			canary))[3:30], base64.RawURLEncoding.EncodeToString([]byte(canary)),
	}
}

// hostile is text that controls a terminal, hides text, or looks like a line of abl.
const hostile = `\033]0;owned\007\033[2J\033[6n\302\233\061m\342\200\256\342\200\213\363\240\201\201\r\b\377`

// leakyProject returns a project whose agents and app print the key, and whose Verifier refutes
// the app with it.
func leakyProject(t *testing.T) *lab.Project {
	attack := func(names ...string) agent.Step {
		script := ""
		for _, name := range names {
			script += strings.ReplaceAll(lab.File(t, "scripts/"+name), "HOSTILE", hostile)
		}
		return must(0, script)
	}
	p := newProject(t, nodeApp,
		builds(hasApp(t, "prints-the-key.mjs"), attack("print-the-key.sh")),
		verifies(attack("print-the-key.sh", "refute-with-the-key.sh")))
	// Otherwise abl would commit nothing.
	p.Write(".abl/config.yaml", rounds("1")+"commit: {allow_secrets: [GEMINI_API_KEY]}\n")
	return p
}

// Whatever the agents and the app print, abl outputs no form of the user's key and nothing that
// controls a terminal: not to a pipe, a terminal, events, JSON, CSV, logs or its own files.
func TestHostileOutputIsRemoved(t *testing.T) {
	lab.Long(t)
	p := leakyProject(t)
	p.Write(".env", "GEMINI_API_KEY='"+canary+"'\n")
	r := p.Must(3, "phase", "1", "--json", "--progress", "plain")
	screen := ownCodes.ReplaceAllString(onTerminal(p, 3, "phase", "1", "--again", "--progress", "tty"), "")
	for how, got := range map[string]string{"events": r.Stdout, "plain": r.Stderr, "tty": screen} {
		t.Run(how, func(t *testing.T) {
			checkHarmless(t, "abl phase", got)
			unescaped := strings.ReplaceAll(got, `\\`, `\`)
			wants(t, "abl phase", unescaped, "[secret …YZ]", `\x1b]0;owned`, "removed: ")
		})
	}
	for _, args := range []string{
		"logs", "logs builder", "logs verifier", "logs builder --raw", "logs verifier --raw", "logs app",
		"status", "status --json", "costs", "costs --json", "costs --csv", "config", "config --json",
		"phase 1 --dry-run --again", "phase 1 --dry-run --again --json",
		"debug usage .abl/logs/calls/p1-build-1.1/stdout --agent scripted", "phase 1", "clean",
	} {
		t.Run(strings.NewReplacer(" ", "_", "/", "_").Replace(args), func(t *testing.T) {
			r := p.Run(strings.Fields(args)...)
			if strings.HasSuffix(args, "--raw") { // prints the lines as they are, for programs
				checkInert(t, "abl "+args, r.Stdout+r.Stderr)
			} else {
				checkHarmless(t, "abl "+args, r.Stdout+r.Stderr)
			}
			if strings.HasSuffix(args, "--json") && !json.Valid([]byte(r.Stdout)) {
				t.Errorf("abl %s: got %s, want JSON", args, r.Stdout)
			}
		})
	}
	screen = strings.ReplaceAll(onTerminal(p, 0, "logs", "builder"), "\r\n", "\n")
	checkHarmless(t, "abl logs builder on a terminal", ownCodes.ReplaceAllString(screen, ""))
	checkLineMarks(p)
	wants(t, "the log of the app", p.Must(0, "logs", "app").Stdout, "app │ [secret …YZ] [secret …YZ]")
	checkStoredFiles(p)
	if _, err := csv.NewReader(strings.NewReader(p.Read(".abl/logs/tokens.csv"))).ReadAll(); err != nil {
		t.Errorf("the ledger: got %v, want CSV", err)
	}
	for _, dir := range []string{"src", ".abl/tests"} { // abl's additions to the agents' files
		checkHarmless(t, "the history of "+dir, p.Git(dir, "log", "--all", "--format=%B %an %ae %D")+
			p.Git(dir, "for-each-ref")+p.Read(dir+"/.git/config"))
	}
	checkNothingLeft(p)
	t.Run("control", func(t *testing.T) { showAttack(t, p) })
}

// checkLineMarks checks that every line of the Builder's log is marked as the Builder's, except the
// first and the last.
func checkLineMarks(p *lab.Project) {
	p.Helper()
	shown := slices.Collect(strings.Lines(p.Must(0, "logs", "builder").Stdout))
	for i, line := range shown {
		want := "builder │ "
		if i == 0 || i == len(shown)-1 {
			want = "── "
		}
		if !strings.HasPrefix(line, want) {
			p.Errorf("line %d of the log: got %q, want it to begin with %q", i+1, line, want)
		}
	}
}

// showAttack repeats the attack on an abl that does not have the key. Then every form reaches
// the user, so abl's redaction is what stops the attack in the test.
func showAttack(t *testing.T, p *lab.Project) {
	t.Helper()
	if err := os.Remove(filepath.Join(p.Dir, ".env")); err != nil {
		t.Fatal(err)
	}
	p.Must(3, "phase", "1", "--again", "--progress", "plain")
	log := p.Read(".abl/logs/builder.log")
	wants(t, "the log", log, spelled()...)
	shown := p.Must(0, "logs", "builder", "--raw").Stdout + p.Must(0, "logs", "app").Stdout
	wants(t, "abl logs", shown, spelled()...)
	wants(t, "the log", log, canary[:5]+"\n"+canary[5:10], spelled()[6][:8]+"\n")
	prompt := p.Must(0, "phase", "1", "--dry-run", "--again").Stdout
	wants(t, "the next prompt", prompt, canary)
	wants(t, "abl status", p.Must(0, "status").Stdout, canary)
	checkNothingLeft(p)
}

// ownCodes matches the sequences that abl sends to a terminal.
var ownCodes = regexp.MustCompile("\x1b\\[(2|3[123]|0)m|\r\x1b\\[K|\x1b\\[\\?25[hl]|\r+\n")

// onTerminal runs abl on a separate terminal and returns its output.
func onTerminal(p *lab.Project, code int, args ...string) string {
	p.Helper()
	cmd := p.Cmd(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		p.Fatal(err)
	}
	defer master.Close()
	got, _ := io.ReadAll(master) // fails after the last writer has closed the terminal
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != code {
		p.Fatalf("abl %s: got exit %d, want %d: %s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), code, got)
	}
	return string(got)
}

// checkHarmless fails the test if text contains the key, controls a terminal, or has a line that
// looks like abl's.
func checkHarmless(t testing.TB, what, text string) {
	t.Helper()
	checkInert(t, what, text)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "abl: phase 1 passed") || strings.HasPrefix(line, "abl: passed") {
			t.Errorf("%s: got the line %q, want no line that looks like abl's", what, line)
		}
	}
}

// checkInert fails the test if text contains the key, also across line ends, or controls a
// terminal.
func checkInert(t testing.TB, what, text string) {
	t.Helper()
	for _, form := range spelled() {
		for _, in := range []string{text, strings.ReplaceAll(text, "\n", "")} {
			if i := strings.Index(in, form); i >= 0 {
				t.Errorf("%s: got the key as %q, want none of it: %q", what, form, in[max(0, i-80):min(len(in), i+120)])
				return
			}
		}
	}
	for i, r := range strings.ToValidUTF8(text, "\x00") {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			t.Errorf("%s: got %U, want only graphic characters: %q", what, r, text[max(0, i-80):min(len(text), i+40)])
			return
		}
	}
}

// checkStoredFiles checks every file below .abl except the Verifier's own.
func checkStoredFiles(p *lab.Project) {
	p.Helper()
	seen := 0
	err := filepath.WalkDir(filepath.Join(p.Dir, ".abl"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "tests":
			return filepath.SkipDir
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			checkInert(p, path, string(data))
			seen++
			return err
		}
		return nil
	})
	if err != nil || seen < 25 {
		p.Errorf("files of .abl: got %d, %v, want 25 or more", seen, err)
	}
}
