package crash

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

// Killed at every named place, at its first visit and at its last, abl comes to
// the same end when it is run again.
func TestKilledAtEveryPlace(t *testing.T) {
	want, visits := wanted(t)
	for _, name := range places(t) {
		n := visits[name]
		if n == 0 && !elsewhere(name) {
			t.Errorf("%s is never reached", name)
		}
		var kills []string
		if n > 0 {
			kills = append(kills, name+"=kill")
		}
		if n > 1 {
			kills = append(kills, fmt.Sprintf("%s=%d*off->kill", name, n-1))
		}
		for _, points := range kills {
			t.Run(points, func(t *testing.T) {
				t.Parallel()
				s := newScene(t, nil)
				s.die(points)
				s.finish()
				same(t, want, s.print())
			})
		}
	}
}

// elsewhere says of a place why an undisturbed run does not come by: only root
// lends a workspace, and only a stopped run stops a call (TestKilledWhileStopping).
func elsewhere(name string) bool {
	return os.Geteuid() != 0 && strings.HasPrefix(name, "lease.") || name == "call.stopping"
}

// Killed at moments that nobody chose.
func TestKilledAtRandomMoments(t *testing.T) {
	want, _ := wanted(t)
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("ABL_TEST_SEED"); text != "" {
		fmt.Sscan(text, &seed)
	}
	t.Logf("ABL_TEST_SEED=%d", seed)
	moments := rand.New(rand.NewPCG(seed, 0))
	for i := range 20 {
		after := time.Duration(moments.Int64N(int64(2500 * time.Millisecond)))
		t.Run(fmt.Sprintf("%d, %v", i, after), func(t *testing.T) {
			t.Parallel()
			s := newScene(t, nil)
			cmd := s.command("", "phase", "1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after) // the moment is what is tested
			cmd.Process.Kill()
			cmd.Wait()
			s.finish()
			same(t, want, s.print())
		})
	}
}
