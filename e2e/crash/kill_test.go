package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// facingPlaces lists the places where the engine is working for abl. make test-all checks them. An
// engine in memory covers all places (TestKilledAtEveryVisit).
const facingPlaces = " app.created app.down app.started call.created call.ended call.removed call.started" +
	" gateway.created gateway.open holder.created holder.started probe.written stage.swept "

// chains is the number of projects that share these places. A killed project continues to the
// next of its places, so a place costs only the repeated work and not a whole phase.
const chains = 3

// Killed at the first or the last visit of a named place, abl reaches the same end in the next
// run. ABL_SOAK checks each place separately, make test every third one.
func TestKilledAtPlaces(t *testing.T) {
	_, short := wanted(t)
	soak := os.Getenv("ABL_SOAK") != ""
	var facing, alone []string
	for _, name := range places(t) {
		faces := strings.Contains(facingPlaces, " "+name+" ")
		if faces {
			facing = append(facing, name)
		}
		if faces && short[name].times == 0 {
			t.Errorf("visits of %s in an iteration: got 0, want 1 or more", name)
		}
		if soak {
			alone = append(alone, visitsOf(t, name, !faces)...)
		}
	}
	slices.SortFunc(facing, func(a, b string) int { return short[a].first - short[b].first })
	dealt := chains
	if soak {
		dealt = len(facing)
	}
	for i := range dealt {
		if i > 0 && testing.Short() {
			break
		}
		var chain []string
		for k := i; k < len(facing); k += dealt {
			chain = append(chain, facing[k]+"=kill")
		}
		killed(t, fmt.Sprintf("chain %d", i+1), shortSteps(), chain)
	}
	for _, points := range alone {
		killed(t, "alone", 2, []string{points})
	}
}

// visitsOf returns a failpoint for the last visit of a place in a long run, and one for the first
// visit if first is set.
func visitsOf(t *testing.T, name string, first bool) (points []string) {
	t.Helper()
	_, long := wantedLong(t)
	n := long[name].times
	if n == 0 && !elsewhere(name) {
		t.Errorf("visits of %s: got 0, want 1 or more", name)
	}
	if n > 0 && first {
		points = append(points, name+"=kill")
	}
	if n > 1 {
		points = append(points, fmt.Sprintf("%s=%d*off->kill", name, n-1))
	}
	return points
}

// killed runs a phase that is killed at each of these failpoints in turn, and then to its end.
func killed(t *testing.T, name string, steps int, chain []string) {
	want, _ := wantedOf(t, steps)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := sceneOf(t, steps, nil)
		for _, points := range chain {
			if !t.Run(points, func(t *testing.T) { s.in(t).runUntilKilled(points) }) {
				return
			}
		}
		s.finish()
		checkSame(t, want, s.print())
	})
}

// Killed before its first call, abl leaves the project id, which the next run needs to find the
// objects on the engine.
func TestKilledBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	wantEngine(t)
	s := newScene(t, nil)
	s.runUntilKilled("stage.swept=kill")
	if !s.Exists(".abl/state.json") {
		t.Error("state.json: got no file, want one")
	}
}

// newRand returns a random source with the seed ABL_TEST_SEED, or a random one. Tests that use it
// run only with ABL_SOAK, because their failures need not come from the last change.
func newRand(t *testing.T) *rand.Rand {
	t.Helper()
	if os.Getenv("ABL_SOAK") == "" {
		t.Skip("only with ABL_SOAK")
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ABL_TEST_SEED"); text != "" {
		fmt.Sscan(text, &seed)
	}
	t.Logf("ABL_TEST_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// elsewhere reports whether an undisturbed run does not reach a place. Only root changes the owner
// of a workspace, only a stopped run stops a call (TestKilledWhileStopping), these scenes have no
// replays (TestKilledDuringAReplay), and app.prepare has TestPrepareKilled. The other places are in
// other programs, or need a provider that fails. They have their own tests.
func elsewhere(name string) bool {
	return os.Geteuid() != 0 && strings.HasPrefix(name, "owner.") || strings.HasPrefix(name, "replay.") || never(name)
}

// never reports whether no phase reaches a place unless it is stopped, has to wait or keeps its state
// in a git remote.
func never(name string) bool {
	return slices.ContainsFunc([]string{
		"call.stopping", "outage.", "learn.", "treeedit.", "build.", "prepare.", "remote.",
	}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Killed at random moments, also while it recovers from a kill, abl reaches the same end.
func TestKilledAtRandomMoments(t *testing.T) {
	moments := newRand(t)
	want, _ := wantedLong(t)
	const projects, kills = 100, 3
	for i := range projects {
		var after [kills]time.Duration
		for k := range after {
			after[k] = time.Duration(moments.Int64N(int64(2500 * time.Millisecond)))
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			s := newLong(t, nil)
			for _, wait := range after {
				t.Run(wait.String(), func(t *testing.T) {
					cmd := s.command("", "phase", "1")
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(wait) // the duration is under test
					cmd.Process.Kill()
					cmd.Wait()
				})
			}
			s.finish()
			checkSame(t, want, s.print())
		})
	}
}
