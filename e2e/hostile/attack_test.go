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
	id     string // as in docs/attacks.md
	by     string // builder, verifier or both
	what   string
	script string
	aside  bool                                 // it waits more than it works, and may run beside others
	after  func(*testing.T, *scene, lab.Result) // what has to be true when the phase is over; may be nil
}

// lib is what the scripts share.
//
//	fails WORDS CMD…  CMD must fail, and say one of the words (joined by |)
//	finds NOTHING…    CMD must print nothing
//	tries CMD…        CMD must end with exit code 0 for the attack to count
const lib = `
held() { echo "held: $*"; }
hole() { echo "HOLE: $*"; }
odd() { echo "ODD: $*"; }
fails() {
  words=$1; shift
  did=$(printf %s "$*" | head -c 200)
  if said=$("$@" 2>&1 </dev/null); then hole "worked: $did $said"
  elif printf %s "$said" | grep -Eqi -e "$words"; then held "$did"
  else odd "$did failed otherwise: $said"; fi
}
empty() {
  said=$("$@" 2>/dev/null </dev/null | head -c 2000)
  if [ -z "$said" ]; then held "$*"; else hole "$* found: $said"; fi
}
tries() { "$@" >/dev/null 2>&1 </dev/null || odd "could not try: $*"; }
A=$PWD/attacker
# where an image of abl's holds nothing of its own
PLACES='/abl /dev/shm /etc /home /mnt /root /run /srv /tmp /var /workspace'
`

const libPath = "/tmp/lib.sh"

// steps makes one step of each attack of a role, the library first.
func steps(role string, attacks []attack) []agent.Step {
	all := []agent.Step{run("cat > " + libPath + " <<'END-OF-LIB'" + lib + "END-OF-LIB\n")}
	var aside []attack
	for _, a := range attacks {
		switch {
		case a.by != role && a.by != "both":
		case a.aside:
			aside = append(aside, a)
		default:
			all = append(all, run(attempt(a)))
		}
	}
	if len(aside) > 0 {
		all = append(all, run(together(aside)))
	}
	return all
}

// inOrder tries attacks one after the other, and those that wait beside others.
func inOrder(attacks []attack) string {
	var script string
	var aside []attack
	for _, a := range attacks {
		if a.aside {
			aside = append(aside, a)
		} else {
			script += attempt(a) + "\n"
		}
	}
	return script + together(aside)
}

// together tries attacks at the same time, and prints of each what it came to.
func together(attacks []attack) string {
	var begin, show strings.Builder
	for _, a := range attacks {
		fmt.Fprintf(&begin, "{ %s; } > /tmp/of-%s 2>&1 &\n", attempt(a), a.id)
		fmt.Fprintf(&show, "cat /tmp/of-%s\n", a.id)
	}
	return begin.String() + "wait\n" + show.String()
}

// attempt is the command that tries one attack and frames what it prints.
func attempt(a attack) string {
	return "echo '@@ " + a.id + "'; timeout -k 1 60 sh -c '. " + libPath + "; " + strings.ReplaceAll(a.script, "'", `'\''`) + "'; echo \"@@ end $?\""
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
	s.script(builds(steps("builder", attacks)...), verifies(steps("verifier", attacks)...))
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
