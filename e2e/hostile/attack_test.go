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

// attack is one attempt of an agent in its container. Its script prints "held …" if a defence
// held and "HOLE …" if it did not. An attack also fails if it prints neither or does not run to
// its end.
type attack struct {
	id      string // as in attacks.md
	by      string // builder, verifier or both
	what    string
	script  string                               // a single command; "" means testdata/attacks/ID.sh
	prelude string                               // a file in testdata with functions for the script, or ""
	aside   bool                                 // waits more than it works, and may run next to others
	after   func(*testing.T, *scene, lab.Result) // checks the result after the phase, unless nil
}

// libPath is the path of testdata/lib.sh in the container.
const libPath = "/tmp/lib.sh"

// writeLib returns the command that writes testdata/lib.sh to libPath.
func writeLib(t testing.TB) string {
	t.Helper()
	return "cat > " + libPath + " <<'END-OF-LIB'\n" + lab.File(t, "lib.sh") + "END-OF-LIB\n"
}

// steps returns one step for each attack of a role, after one that writes the library.
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

// inOrder returns a command that makes the attacks one after the other, and those that wait next
// to the others.
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

// together returns a command that makes the attacks at the same time and prints the result of
// each.
func together(t testing.TB, attacks []attack) string {
	t.Helper()
	var begin, show strings.Builder
	for _, a := range attacks {
		fmt.Fprintf(&begin, "{ %s; } > /tmp/of-%s 2>&1 &\n", attempt(t, a), a.id)
		fmt.Fprintf(&show, "cat /tmp/of-%s\n", a.id)
	}
	return begin.String() + "wait\n" + show.String()
}

// attempt returns the command that makes one attack and frames its output.
func attempt(t testing.TB, a attack) string {
	t.Helper()
	script := a.script
	if script == "" {
		script = lab.File(t, "attacks/"+a.id+".sh")
	}
	if a.prelude != "" {
		script = lab.File(t, a.prelude) + script
	}
	return "echo '@@ " + a.id + "'; timeout -k 1 60 sh -c '. " + libPath + "; " +
		strings.ReplaceAll(script, "'", `'\''`) + "'; echo \"@@ end $?\""
}

// section returns the output of an attack and its exit code.
func section(printed, id string) (text, code string, found bool) {
	_, rest, found := strings.Cut(printed, "@@ "+id+"\n")
	text, rest, ended := strings.Cut(rest, "@@ end ")
	code, _, _ = strings.Cut(rest, "\n")
	return text, code, found && ended
}

// judge checks that every attack ran to its end and failed.
func (s *scene) judge(t *testing.T, r lab.Result, attacks []attack) {
	t.Helper()
	printed := map[string]string{"builder": s.Printed("p1-build-1.1"), "verifier": s.Printed("p1-verify-1.1")}
	for _, a := range attacks {
		t.Run(a.id, func(t *testing.T) {
			for _, role := range []string{"builder", "verifier"} {
				if a.by != role && a.by != "both" {
					continue
				}
				checkHeld(t, a, role, printed[role])
			}
			if a.after != nil {
				a.after(t, s, r)
			}
		})
	}
}

// checkHeld checks that one attack ran to its end and failed.
func checkHeld(t *testing.T, a attack, by, printed string) {
	t.Helper()
	text, code, tried := section(printed, a.id)
	if !tried || code != "0" || !strings.Contains(text, "held: ") || strings.Contains(text, "HOLE") ||
		strings.Contains(text, "ODD") {
		t.Errorf("%s by the %s, %s: got end %t, exit code %q, want true, 0 and \"held: \" without a hole:\n%s",
			a.id, by, a.what, tried, code, text)
	}
}

// playAttacks runs one phase in which both roles make these attacks. The phase must pass, and the
// attacks must fail.
func (s *scene) playAttacks(t *testing.T, attacks []attack) lab.Result {
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
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o",
		filepath.Join(dir, "attacker"), "./testdata/attacker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return out, err
	}
	return os.ReadFile(filepath.Join(dir, "attacker"))
})

// installAttacker puts the attacker program, for attacks that a shell cannot make, into both
// workspaces.
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

// state returns the content of state.json, which must be readable at any time.
func (s *scene) state() (state struct {
	Version int
	Project string
	Phases  map[string]struct{ Status string }
}) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.Read(".abl/state.json")), &state); err != nil {
		s.Errorf("state.json: got error %v, want valid JSON", err)
	}
	return state
}
