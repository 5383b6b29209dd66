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

// canary is the key in .env. Agents hold it in two halves, so that no file of
// abl's has it before they print it.
const canary = `sk-ca$nary"4711+abcdeXYZ`

// spelled is the canary as programs print it. Of base64 only what no neighbour
// changes is told apart.
func spelled() []string {
	std := base64.RawStdEncoding.EncodeToString
	quoted, _ := json.Marshal(canary)
	return []string{
		canary, string(quoted[1 : len(quoted)-1]), url.QueryEscape(canary), hex.EncodeToString([]byte(canary)), strings.ToUpper(hex.EncodeToString([]byte(canary))),
		std([]byte(canary)), std([]byte("x" + canary))[3:30], std([]byte("xx" + canary))[3:30], base64.RawURLEncoding.EncodeToString([]byte(canary)),
	}
}

// hostile is what steers a terminal, hides text, or passes for a line of abl's.
const hostile = `\033]0;owned\007\033[2J\033[6n\302\233\061m\342\200\256\342\200\213\363\240\201\201\r\b\377`

// leaky is a project whose agents and app print the key, and whose Verifier refutes the app in
// such words.
func leaky(t *testing.T) *lab.Project {
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
	p.Write(".abl/config.yaml", rounds("1")+"commit: {allow_secrets: [GEMINI_API_KEY]}\n") // or nothing of it would be committed
	return p
}

// Nothing that steers, and no spelling of the person's key, gets out of abl by
// any way, whatever the agents and the app print: a pipe, a terminal, events,
// JSON, CSV, logs, and every file that abl keeps.
func TestNothingHostileGetsOut(t *testing.T) {
	lab.Long(t)
	p := leaky(t)
	p.Write(".env", "GEMINI_API_KEY='"+canary+"'\n")
	r := p.Must(3, "phase", "1", "--json", "--progress", "plain")
	screen := ownCodes.ReplaceAllString(onTerminal(p, 3, "phase", "1", "--again", "--progress", "tty"), "")
	for how, got := range map[string]string{"events": r.Stdout, "plain": r.Stderr, "tty": screen} {
		harmless(t, "abl phase, "+how, got)
		wants(t, "abl phase, "+how, strings.ReplaceAll(got, `\\`, `\`), "[secret …YZ]", `\x1b]0;owned`, "taken away: ")
	}
	for _, args := range []string{
		"logs", "logs builder", "logs verifier", "logs builder --raw", "logs verifier --raw", "logs app", "status", "status --json", "costs", "costs --json", "costs --csv", "config", "config --json",
		"phase 1 --dry-run --again", "phase 1 --dry-run --again --json", "debug usage .abl/logs/calls/p1-build-1.1/stdout --agent scripted", "phase 1", "clean",
	} {
		r := p.Run(strings.Fields(args)...)
		harmless(t, "abl "+args, r.Stdout+r.Stderr)
		if strings.HasSuffix(args, "--json") && !json.Valid([]byte(r.Stdout)) {
			t.Errorf("abl %s prints no JSON: %s", args, r.Stdout)
		}
	}
	harmless(t, "abl logs builder on a terminal", ownCodes.ReplaceAllString(strings.ReplaceAll(onTerminal(p, 0, "logs", "builder"), "\r\n", "\n"), ""))
	shown := slices.Collect(strings.Lines(p.Must(0, "logs", "builder").Stdout))
	for i, line := range shown {
		if own := i == 0 || i == len(shown)-1; strings.HasPrefix(line, "── ") != own || strings.HasPrefix(line, "builder │ ") == own {
			t.Errorf("a line of the agent's own: %q", line)
		}
	}
	wants(t, "the log of the app", p.Must(0, "logs", "app").Stdout, "app │ [secret …YZ] [secret …YZ]")
	keptFiles(p)
	if _, err := csv.NewReader(strings.NewReader(p.Read(".abl/logs/tokens.csv"))).ReadAll(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{"src", ".abl/tests"} { // all that abl writes into them besides the agents' own files
		harmless(t, "the history of "+dir, p.Git(dir, "log", "--all", "--format=%B %an %ae %D")+p.Git(dir, "for-each-ref")+p.Read(dir+"/.git/config"))
	}
	noLeftovers(p)
}

// Without a key to know, the same attack is seen everywhere: what keeps it in is
// not that it fails.
func TestWhatTheAttackPrints(t *testing.T) {
	lab.Long(t)
	p := leaky(t)
	p.Must(3, "phase", "1", "--progress", "plain")
	log, err := os.ReadFile(filepath.Join(p.Dir, ".abl/logs/builder.log"))
	if err != nil {
		t.Fatal(err)
	}
	shown := p.Must(0, "logs", "builder", "--raw").Stdout + p.Must(0, "logs", "app").Stdout
	for _, form := range spelled() {
		if !strings.Contains(string(log), form) || !strings.Contains(shown, form) {
			t.Errorf("the log, or abl logs, does not show %q", form)
		}
	}
	wants(t, "the log", string(log), canary[:5]+"\n"+canary[5:10], spelled()[6][:8]+"\n")
	prompt := p.Must(0, "phase", "1", "--dry-run", "--again").Stdout
	wants(t, "the next prompt", prompt, canary)
	wants(t, "abl status", p.Must(0, "status").Stdout, canary)
	noLeftovers(p)
}

// ownCodes are what abl itself says to a terminal.
var ownCodes = regexp.MustCompile("\x1b\\[(2|3[123]|0)m|\r\x1b\\[K|\x1b\\[\\?25[hl]|\r+\n")

// onTerminal runs abl on a terminal of its own and returns all that reached it.
func onTerminal(p *lab.Project, code int, args ...string) string {
	p.Helper()
	cmd := p.Cmd(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		p.Fatal(err)
	}
	defer master.Close()
	got, _ := io.ReadAll(master) // it ends with an error when the last writer is gone
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != code {
		p.Fatalf("abl %s: exit %d: %s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), got)
	}
	return string(got)
}

// harmless fails the test for text that holds the key, or steers, or has a line
// that passes for abl's.
func harmless(t testing.TB, what, text string) {
	t.Helper()
	inert(t, what, text)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "abl: phase 1 passed") || strings.HasPrefix(line, "abl: passed") {
			t.Errorf("%s has a line of abl's that is not: %q", what, line)
		}
	}
}

// inert fails the test for text that holds the key, over line ends too, or steers.
func inert(t testing.TB, what, text string) {
	t.Helper()
	for _, form := range spelled() {
		for _, in := range []string{text, strings.ReplaceAll(text, "\n", "")} {
			if i := strings.Index(in, form); i >= 0 {
				t.Errorf("%s shows the key as %q: %q", what, form, in[max(0, i-80):min(len(in), i+120)])
				return
			}
		}
	}
	for i, r := range strings.ToValidUTF8(text, "\x00") {
		if r != '\n' && r != '\t' && !unicode.IsGraphic(r) {
			t.Errorf("%s holds %U: %q", what, r, text[max(0, i-80):min(len(text), i+40)])
			return
		}
	}
}

// keptFiles looks at every file below .abl but the Verifier's own.
func keptFiles(p *lab.Project) {
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
			inert(p, path, string(data))
			seen++
			return err
		}
		return nil
	})
	if err != nil || seen < 25 {
		p.Errorf("%d files were looked at, %v", seen, err)
	}
}
