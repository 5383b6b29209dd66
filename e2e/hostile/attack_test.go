package hostile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// attack is one thing that an agent tries in its container. Its script says
// "held …" where a defence held and "HOLE …" where it did not; one that says
// neither, or was not carried out to its end, fails as well.
type attack struct {
	id      string // as in docs/attacks.md
	by      string // builder, verifier or both
	what    string
	script  string                               // a single command; without it the script is testdata/attacks/ID.sh
	prelude string                               // a file in testdata with functions for the script; may be empty
	aside   bool                                 // it waits more than it works, and may run beside others
	after   func(*testing.T, *scene, lab.Result) // what has to be true when the phase is over; may be nil
}

// libPath is where a script finds testdata/lib.sh in the container.
const libPath = "/tmp/lib.sh"

// writeLib is the command that writes testdata/lib.sh to libPath.
func writeLib(t testing.TB) string {
	t.Helper()
	return "cat > " + libPath + " <<'END-OF-LIB'\n" + lab.File(t, "lib.sh") + "END-OF-LIB\n"
}

// steps makes one step of each attack of a role, the library first.
func steps(t testing.TB, role string, attacks []attack) []agent.Step {
	t.Helper()
	all := []agent.Step{run(writeLib(t))}
	var aside []attack
	for _, a := range attacks {
		switch {
		case a.by != role && a.by != "both":
		case a.aside:
			aside = append(aside, a)
		default:
			all = append(all, run(attempt(t, a)))
		}
	}
	if len(aside) > 0 {
		all = append(all, run(together(t, aside)))
	}
	return all
}

// inOrder tries attacks one after the other, and those that wait beside others.
func inOrder(t testing.TB, attacks []attack) string {
	t.Helper()
	var script string
	var aside []attack
	for _, a := range attacks {
		if a.aside {
			aside = append(aside, a)
		} else {
			script += attempt(t, a) + "\n"
		}
	}
	return script + together(t, aside)
}

// together tries attacks at the same time, and prints of each what it came to.
func together(t testing.TB, attacks []attack) string {
	t.Helper()
	var begin, show strings.Builder
	for _, a := range attacks {
		fmt.Fprintf(&begin, "{ %s; } > /tmp/of-%s 2>&1 &\n", attempt(t, a), a.id)
		fmt.Fprintf(&show, "cat /tmp/of-%s\n", a.id)
	}
	return begin.String() + "wait\n" + show.String()
}

// attempt is the command that tries one attack and frames what it prints.
func attempt(t testing.TB, a attack) string {
	t.Helper()
	script := a.script
	if script == "" {
		script = lab.File(t, "attacks/"+a.id+".sh")
	}
	if a.prelude != "" {
		script = lab.File(t, a.prelude) + script
	}
	return "echo '@@ " + a.id + "'; timeout -k 1 60 sh -c '. " + libPath + "; " + strings.ReplaceAll(script, "'", `'\''`) + "'; echo \"@@ end $?\""
}

// section is what an attack printed, and its exit code.
func section(printed, id string) (text, code string, found bool) {
	_, rest, found := strings.Cut(printed, "@@ "+id+"\n")
	text, rest, ended := strings.Cut(rest, "@@ end ")
	code, _, _ = strings.Cut(rest, "\n")
	return text, code, found && ended
}

// judge wants of every attack that it was tried to its end and came to nothing.
func (s *scene) judge(t *testing.T, r lab.Result, attacks []attack) {
	t.Helper()
	printed := map[string]string{"builder": s.Printed("p1-build-1.1"), "verifier": s.Printed("p1-verify-1.1")}
	for _, a := range attacks {
		t.Run(a.id, func(t *testing.T) {
			for _, role := range []string{"builder", "verifier"} {
				if a.by != role && a.by != "both" {
					continue
				}
				held(t, a, role, printed[role])
			}
			if a.after != nil {
				a.after(t, s, r)
			}
		})
	}
}

// held wants one attack to have been tried to its end, and to have come to nothing.
func held(t *testing.T, a attack, by, printed string) {
	t.Helper()
	text, code, tried := section(printed, a.id)
	if !tried || code != "0" || !strings.Contains(text, "held: ") || strings.Contains(text, "HOLE") || strings.Contains(text, "ODD") {
		t.Errorf("%s, tried by the %s: %s (ran to its end: %v, exit code %s)\n%s", a.id, by, a.what, tried, code, text)
	}
}

// plays runs one phase in which both roles try all of these, passes, and judges.
func (s *scene) plays(t *testing.T, attacks []attack) lab.Result {
	t.Helper()
	s.script(builds(steps(t, "builder", attacks)...), verifies(steps(t, "verifier", attacks)...))
	r := s.play(0)
	s.judge(t, r, attacks)
	return r
}

var buildAttacker = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "abl-attacker")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(dir, "attacker"), "./testdata/attacker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(filepath.Join(dir, "attacker"))
})

// installAttacker puts the program for what a shell cannot do into both workspaces.
func installAttacker(t *testing.T, s *scene) {
	t.Helper()
	program, err := buildAttacker()
	if err != nil {
		t.Fatalf("cannot build the attacker: %v: %s", err, program)
	}
	for _, dir := range []string{"src", ".abl/tests"} {
		if err := os.WriteFile(filepath.Join(s.Dir, dir, "attacker"), program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// state is state.json, which has to be readable at any time.
func (s *scene) state() (state struct {
	Version int
	Project string
	Phases  map[string]struct{ Status string }
}) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.Read(".abl/state.json")), &state); err != nil {
		s.Errorf("state.json: %v", err)
	}
	return state
}
