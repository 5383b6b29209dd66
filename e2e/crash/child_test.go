package crash

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/play"
)

// Names of the environment that make this test binary the supervisor.
const (
	childRoot   = "ABL_CRASH_ROOT"   // of its project
	childSocket = "ABL_CRASH_SOCKET" // of its engine
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := supervise(root, dial(os.Getenv(childSocket))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(400) // hundreds of phases are played here, each gone in moments
	os.Exit(m.Run())
}

// supervise takes phase 1 to its end, as abl phase 1 does, on an engine of the test's.
func supervise(root string, engine *remote) error {
	r, err := play.Phase{Root: root, Engine: engine}.Play(context.Background())
	if err == nil && r.Status != state.Passed {
		err = fmt.Errorf("it came to rest as %s: %v", r.Status, r.Why)
	}
	return err
}
