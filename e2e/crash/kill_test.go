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

// facing are the places at which the engine is amid something for abl. They are
// tried in every run of the tests; of the rest, a few others each time: an engine
// in memory has them all (TestKilledAtEveryVisit).
const facing = " app.created app.down app.started call.created call.ended call.removed call.started" +
	" gateway.created gateway.open holder.created holder.started probe.laid stage.swept "

// chains is how many projects share the places of facing. One that is killed goes on
// to the next of its places, so a place costs what is done anew there and no whole phase.
const chains = 3

// Killed at a named place, at its first visit or at its last, abl comes to the
// same end when it is run again. ABL_SOAK tries all of them, each by itself.
func TestKilledAtPlaces(t *testing.T) {
	_, long := wantedLong(t)
	_, short := wanted(t)
	var always, others []string
	for _, name := range places(t) {
		n := long[name].times
		if n == 0 && !elsewhere(name) {
			t.Errorf("%s is never reached", name)
		}
		if strings.Contains(facing, " "+name+" ") {
			if short[name].times == 0 {
				t.Errorf("one iteration never reaches %s", name)
			}
			always = append(always, name)
		} else if n > 0 {
			others = append(others, name+"=kill")
		}
		if n > 1 {
			others = append(others, fmt.Sprintf("%s=%d*off->kill", name, n-1))
		}
	}
	slices.SortFunc(always, func(a, b string) int { return short[a].first - short[b].first })
	dealt := chains
	if os.Getenv("ABL_SOAK") == "" {
		dice(t).Shuffle(len(others), func(i, k int) { others[i], others[k] = others[k], others[i] })
		others = others[:min(4, len(others))]
	} else {
		dealt = len(always)
	}
	for i := range dealt {
		var chain []string
		for k := i; k < len(always); k += dealt {
			chain = append(chain, always[k]+"=kill")
		}
		killed(t, fmt.Sprintf("chain %d", i+1), shortSteps(), chain)
	}
	for _, points := range others {
		killed(t, "alone", 2, []string{points})
	}
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

// dice fall as ABL_TEST_SEED says, anew each time where it says nothing.
func dice(t *testing.T) *rand.Rand {
	t.Helper()
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
// (TestKilledAmidAReplay), and the rest is other programs' or a provider's that
// is away, with tests of their own.
func elsewhere(name string) bool {
	return os.Geteuid() != 0 && strings.HasPrefix(name, "lease.") || strings.HasPrefix(name, "replay.") || never(name)
}

// never says of a place that no phase comes by unless it is stopped or has to wait.
func never(name string) bool {
	return slices.ContainsFunc([]string{"call.stopping", "outage.", "learn.", "treeedit.", "build."}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Killed at moments that nobody chose, be it in the middle of going on after a kill.
func TestKilledAtRandomMoments(t *testing.T) {
	want, _ := wantedLong(t)
	moments, projects := dice(t), 2
	if os.Getenv("ABL_SOAK") != "" {
		projects = 100
	}
	const kills = 3
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
