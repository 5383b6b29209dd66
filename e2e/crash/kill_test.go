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

// facingPlaces are those at which the engine is amid something for abl. They are tried
// in every run of the tests: an engine in memory has them all (TestKilledAtEveryVisit).
const facingPlaces = " app.created app.down app.started call.created call.ended call.removed call.started" +
	" gateway.created gateway.open holder.created holder.started probe.laid stage.swept "

// chains is how many projects share these places. One that is killed goes on
// to the next of its places, so a place costs what is done anew there and no whole phase.
const chains = 3

// Killed at a named place, at its first visit or at its last, abl comes to the
// same end when it is run again. ABL_SOAK tries all of them, each by itself.
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
			t.Errorf("one iteration never reaches %s", name)
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

// visitsOf are the last visit of a place in a long run, and, where wanted, the first.
func visitsOf(t *testing.T, name string, first bool) (points []string) {
	t.Helper()
	_, long := wantedLong(t)
	n := long[name].times
	if n == 0 && !elsewhere(name) {
		t.Errorf("%s is never reached", name)
	}
	if n > 0 && first {
		points = append(points, name+"=kill")
	}
	if n > 1 {
		points = append(points, fmt.Sprintf("%s=%d*off->kill", name, n-1))
	}
	return points
}

// killed runs a phase that is killed at each of these in turn, and then to its end.
func killed(t *testing.T, name string, steps int, chain []string) {
	want, _ := wantedOf(t, steps)
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		s := sceneOf(t, steps, nil)
		for _, points := range chain {
			if !t.Run(points, func(t *testing.T) { s.in(t).die(points) }) {
				return
			}
		}
		s.finish()
		same(t, want, s.print())
	})
}

// Killed before its first call, abl leaves the id under which the next one looks for
// what is left on the engine.
func TestKilledBeforeTheFirstCall(t *testing.T) {
	t.Parallel()
	wantEngine(t)
	s := newScene(t, nil)
	s.die("stage.swept=kill")
	if !s.Exists(".abl/state.json") {
		t.Error("there is no state.json")
	}
}

// dice fall as ABL_TEST_SEED says, anew each time where it says nothing: what they decide
// is for ABL_SOAK, since no change is to blame for it.
func dice(t *testing.T) *rand.Rand {
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

// elsewhere says of a place why an undisturbed run does not come by: only root
// lends a workspace, only a stopped run stops a call (TestKilledWhileStopping),
// only tests that are believed for what they show are replayed
// (TestKilledAmidAReplay), app.prepare has TestPrepareKilled, and the rest is other programs' or a provider's that
// is away, with tests of their own.
func elsewhere(name string) bool {
	return os.Geteuid() != 0 && strings.HasPrefix(name, "lease.") || strings.HasPrefix(name, "replay.") || never(name)
}

// never says of a place that no phase comes by unless it is stopped or has to wait.
func never(name string) bool {
	return slices.ContainsFunc([]string{"call.stopping", "outage.", "learn.", "treeedit.", "build.", "prepare."}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Killed at moments that nobody chose, be it in the middle of going on after a kill.
func TestKilledAtRandomMoments(t *testing.T) {
	moments := dice(t)
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
					time.Sleep(wait) // the moment is what is tested
					cmd.Process.Kill()
					cmd.Wait()
				})
			}
			s.finish()
			same(t, want, s.print())
		})
	}
}
