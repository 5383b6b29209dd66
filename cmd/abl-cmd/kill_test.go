//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The processes of one container are found in the table of both versions of cgroups.
func TestMembers(t *testing.T) {
	ours, other := strings.Repeat("1f", 32), strings.Repeat("2e", 32)
	table := t.TempDir()
	for pid, c := range map[string]struct{ cgroup, state string }{
		"1":       {"0::/\n", "S"},
		"10":      {"5:pids:/docker/" + ours + "\n0::/\n", "R"},
		"11":      {"0::/system.slice/docker-" + ours + ".scope\n", "T"},
		"12":      {"0::/../docker-" + ours + ".scope\n", "S"},
		"13":      {"0::/system.slice/docker-" + ours + ".scope\n", "Z"},
		"14":      {"5:pids:/docker/" + other + "\n", "R"},
		"15":      {"0::/user.slice\n", "R"},
		"version": {"0::/docker/" + ours + "\n", "R"},
	} {
		dir := filepath.Join(table, pid)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"cgroup": c.cgroup, "status": "Name:\tx\nState:\t" + c.state + " (x)\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := members(table, ours)
	slices.Sort(got)
	if want := []int{10, 11, 12}; !slices.Equal(got, want) {
		t.Errorf("members are %v, want %v", got, want)
	}
}

// A part of an id, or another word, could be in the path of another cgroup.
func TestKillRequiresFullID(t *testing.T) {
	for _, id := range []string{"", "/", "docker", strings.Repeat("1", 63), strings.Repeat("1", 65)} {
		if err := killContainer(t.Context(), started{args: []string{id}}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", id)) {
			t.Errorf("kill of %q: got error %v, want one with the id", id, err)
		}
	}
}
