package phase

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// remoteRig is a project whose origin is a bare repository, and a colleague's clone of it.
func remoteRig(t *testing.T, lease string) (p, q *lab.Project, origin string) {
	t.Helper()
	p = newProject(t,
		"app: {command: npm start, port: 3000, ready: {path: /, timeout: 20s}}\nremote: {lease: "+lease+"}\n",
		builds(write("lib/word.mjs", "export const word = 'ok';\n")), verifies())
	existingRepo(p, "source: {repo: .}\n")
	p.Env = append(p.Env, "ABL_VERIFY_EVIDENCE=off")
	origin = filepath.Join(t.TempDir(), "origin.git")
	p.Git("", "init", "-q", "--bare", "-b", "main", origin)
	p.Git("", "remote", "add", "origin", origin)
	p.Git("", "push", "-q", "origin", "main")
	q = cloneOf(p, origin)
	t.Cleanup(func() { q.Run("clean") })
	return p, q, origin
}

// leases returns the holder and the sequence number of the lease in each pushed state, oldest first,
// or "free" for a state without a lease.
func leases(p *lab.Project, origin string) (all []string) {
	p.Helper()
	for _, commit := range strings.Fields(p.Git("", "--git-dir", origin, "rev-list", "--reverse", "refs/abl/state")) {
		if !strings.Contains(p.Git("", "--git-dir", origin, "ls-tree", "--name-only", commit), "lease.json") {
			all = append(all, "free")
			continue
		}
		var l struct {
			Holder   string
			Sequence int
		}
		if err := json.Unmarshal([]byte(p.Git("", "--git-dir", origin, "show", commit+":lease.json")), &l); err != nil {
			p.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %d", l.Holder, l.Sequence))
	}
	return all
}

// TestRemote: a node is killed in the Verifier's call. Another one waits until the lease expires,
// and continues without paying for the Builder's call again.
func TestRemote(t *testing.T) {
	p, q, origin := remoteRig(t, "6s")
	env := p.Env
	p.Env = append(env[:len(env):len(env)], "ABL_FAILPOINTS=call.starting=1*off->kill")
	if r := p.Run("phase", "1", "--remote", "origin"); r.Code != -1 {
		t.Fatalf("the first node: got exit %d, want a kill\n%s", r.Code, r.Stderr)
	}
	p.Env = env
	r := q.Must(0, "phase", "1", "--remote", "origin")
	wants(t, "the second node", r.Stderr, "holds the lease of this project", "the lease of ",
		"expired; this run continues",
		"call p1-verify-1.1 was running on ", "it starts again as attempt 2, and its cost is unknown", "passed")
	lacks(t, "the second node", r.Stdout+r.Stderr, "p1-build-1.2")
	var calls []string
	for line := range strings.Lines(q.Read(".abl/logs/tokens.csv")) {
		for _, key := range []string{"p1-build-1.1", "p1-verify-1.1", "p1-verify-1.2"} {
			if strings.Contains(line, key) {
				calls = append(calls, key)
			}
		}
	}
	if got, want := strings.Join(calls, " "), "p1-build-1.1 p1-verify-1.1 p1-verify-1.2"; got != want {
		t.Errorf("calls in the ledger: got %q, want %q\n%s", got, want, q.Read(".abl/logs/tokens.csv"))
	}
	one, two := p.ID(), q.ID()
	turns := 0
	all := leases(p, origin)
	for i, l := range all {
		if i > 0 && strings.HasPrefix(l, one) && !strings.HasPrefix(all[i-1], one) {
			turns++
		}
	}
	if turns > 0 || !strings.HasPrefix(all[0], one) || !strings.HasPrefix(all[len(all)-2], two) ||
		all[len(all)-1] != "free" {
		t.Errorf("leases: got %q, want those of %s, then those of %s, then a free one", all, one, two)
	}
	r = p.Must(0, "phase", "1", "--remote", "origin")
	wants(t, "the first node again", r.Stdout+r.Stderr, "restored: phase 1 passed", "phase 1 has already passed")
	if got := leases(p, origin); len(got) != len(all) {
		t.Errorf("leases after a run with nothing to do: got %q, want %q", got, all)
	}
	checkNothingLeft(q)
}

// TestRemoteKilled: abl is killed before and after pushes. It continues its lease each time, and repeats no call.
func TestRemoteKilled(t *testing.T) {
	lab.Long(t)
	p, q, origin := remoteRig(t, "60s")
	env := p.Env
	for _, points := range []string{
		"remote.committed=kill", "remote.pushed=kill", "remote.taken=kill", "remote.committed=2*off->kill",
		"remote.pushed=2*off->kill",
	} {
		p.Env = append(env[:len(env):len(env)], "ABL_FAILPOINTS="+points)
		if r := p.Run("phase", "1", "--remote", "origin"); r.Code != -1 {
			t.Fatalf("%s: got exit %d, want a kill\n%s", points, r.Code, r.Stderr)
		}
	}
	p.Env = env
	p.Must(0, "phase", "1", "--remote", "origin")
	var calls []string
	for _, row := range p.Ledger() {
		calls = append(calls, row["call_id"]+" "+row["outcome"])
	}
	if got, want := strings.Join(calls, ", "), "p1-build-1.1 done, p1-verify-1.1 done"; got != want {
		t.Errorf("calls in the ledger: got %q, want %q", got, want)
	}
	all := leases(p, origin)
	for i, got := range all {
		want := fmt.Sprintf("%s %d", p.ID(), i+1)
		if i == len(all)-1 {
			want = "free"
		}
		if got != want {
			t.Errorf("lease %d: got %q, want %q", i+1, got, want)
		}
	}
	r := q.Must(0, "phase", "1", "--remote", "origin")
	wants(t, "another node", r.Stdout+r.Stderr, "restored: phase 1 passed", "phase 1 has already passed")
	checkNothingLeft(p)
}
