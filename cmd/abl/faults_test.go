package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles/call"
)

// classesAndCodes returns each class with the exit code of a run that gave up on such a call.
func classesAndCodes(t *testing.T) (all []string) {
	for _, c := range []outcome.Outcome{
		outcome.Failed, outcome.Nothing, outcome.Crashed, outcome.OutOfMemory, outcome.Timeout, outcome.Idle, outcome.Flood, outcome.Disk, outcome.Lost, outcome.AppGone,
		outcome.TooLarge, outcome.Refused, outcome.Cut, outcome.Filtered, outcome.NoModel, outcome.Denied, outcome.RateLimited, outcome.Quota, outcome.Unavailable, outcome.Network, outcome.EngineGone, outcome.OverBudget, outcome.Unproven,
	} {
		p := state.Phase{Status: state.Built, Class: string(c), Tries: 1}
		_, err := orchestrator.After(p, orchestrator.CommitSrc, orchestrator.Happened{Retry: orchestrator.Retry{Policy: call.Policy{Now: time.Now()}}}, 5)
		if err == nil {
			t.Errorf("a call that ends as %s twice: got no error, want one", c)
		}
		all = append(all, fmt.Sprintf("%s %d", c, exit.Code(exit.OnEngine(err))))
	}
	return append(all, fmt.Sprintf("%s %d", outcome.Done, exit.Passed), fmt.Sprintf("%s %d", outcome.Interrupted, exit.INT))
}

var (
	classRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|.*\\| (\\d+) \\|$")
	agentRow = regexp.MustCompile("(?m)^- `(\\w+)`, exit (\\d+):$")
	exitHead = regexp.MustCompile(`(?m)^### Exit (\d+)`)
)

// docs/faults.md has every class with its exit code, the faults of real CLIs have the exit codes of
// their classes, and every other fault has an exit code that exists.
func TestFaultsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/faults.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range classRow.FindAllStringSubmatch(string(page), -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	real := classesAndCodes(t)
	slices.Sort(documented)
	slices.Sort(real)
	if !slices.Equal(documented, real) {
		t.Errorf("classes in docs/faults.md: got %v\nwant %v", documented, real)
	}
	ofAgents := agentRow.FindAllStringSubmatch(string(page), -1)
	for _, row := range ofAgents {
		if !slices.Contains(real, row[1]+" "+row[2]) {
			t.Errorf("%s: got exit code %s of a call that ends as %s, want one of %v", row[0], row[2], row[1], real)
		}
	}
	if len(ofAgents) < 8 {
		t.Errorf("got %d classes of faults of real CLIs, want 8 or more", len(ofAgents))
	}
	codes := map[string]bool{}
	for _, e := range exit.Entries() {
		codes[fmt.Sprint(e.Code)] = true
	}
	_, others, _ := strings.Cut(string(page), "\n## Other faults\n")
	exits := exitHead.FindAllStringSubmatch(others, -1)
	for _, m := range exits {
		if !codes[m[1]] {
			t.Errorf("exit code of other faults: got %s, want one that exists", m[1])
		}
	}
	if len(exits) < 5 {
		t.Errorf("got %d exit codes of other faults, want 5 or more", len(exits))
	}
}
