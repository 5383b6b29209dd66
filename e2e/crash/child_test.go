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

// Variables that make this test binary run as the supervisor.
const (
	childRoot   = "ABL_CRASH_ROOT"   // the project's directory
	childSocket = "ABL_CRASH_SOCKET" // the engine's socket
)

func TestMain(m *testing.M) {
	if root := os.Getenv(childRoot); root != "" {
		if err := supervise(root, dial(os.Getenv(childSocket))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	debug.SetGCPercent(400) // hundreds of short phases run here
	os.Exit(m.Run())
}

// supervise runs phase 1 to its end like abl phase 1, on the test's engine.
func supervise(root string, engine *remote) error {
	r, err := play.Phase{Root: root, Engine: engine}.Play(context.Background())
	if err == nil && r.Status != state.Passed {
		err = fmt.Errorf("the phase stopped as %s: %v", r.Status, r.Why)
	}
	return err
}
