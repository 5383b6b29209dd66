package scripts_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestVulncheck checks that vulncheck.sh succeeds without a finding and without its database, and
// fails otherwise.
func TestVulncheck(t *testing.T) {
	for name, c := range map[string]struct {
		says   string // output of govulncheck
		status string
		want   string
		ok     bool
	}{
		"no finding": {"No vulnerabilities found.", "0", "No vulnerabilities found.", true},
		"a finding":  {"Vulnerability #1: GO-2026-0001", "3", "Vulnerability #1: GO-2026-0001", false},
		"no database": {
			"govulncheck: fetching vulnerabilities: no such host",
			"1",
			"skipped: govulncheck: fetching vulnerabilities: no such host",
			true,
		},
		"not compiled": {"govulncheck: loading packages: there are errors", "1", "loading packages", false},
		"its own name": {"x.go: \"govulncheck: fetching vulnerabilities: \"", "3", "x.go", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := &machine{t: t, dir: t.TempDir()}
			m.write("go", "#!/bin/sh\ncat <<'X'\n"+c.says+"\nX\nexit "+c.status+"\n")
			cmd := exec.CommandContext(t.Context(), "bash", "vulncheck.sh", "govulncheck@v1")
			cmd.Env = []string{"PATH=" + m.dir + ":/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.ok || !strings.Contains(string(out), c.want) {
				t.Errorf("got %q, error %v, want %q, success %v", out, err, c.want, c.ok)
			}
		})
	}
}
