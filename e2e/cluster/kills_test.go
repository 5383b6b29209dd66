package cluster

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// period is remote.lease of the projects.
const period = 20 * time.Second

// history fails the test unless the pushed states of a project follow each other: the sequence numbers of a
// lease grow by one, and the ledger only grows.
func (r *rig) history(t *testing.T, origin string) {
	t.Helper()
	last, ledger := 0, ""
	for _, commit := range strings.Fields(r.Git("", "--git-dir", origin, "rev-list", "--reverse", "refs/abl/state")) {
		l := r.lease(t, origin, commit)
		if last != 0 && l.Sequence != 0 && l.Sequence != last+1 {
			t.Errorf("%s: the lease after lease %d: got %d, want %d", origin, last, l.Sequence, last+1)
		}
		last = l.Sequence
		was := ledger
		if ledger = r.file(origin, commit, "tokens.csv"); !strings.HasPrefix(ledger, was) {
			t.Errorf("%s: the ledger of %.12s: got\n%s\nwant it to begin with\n%s", origin, commit, ledger, was)
		}
	}
}

// lease is the right to run a project in a pushed state.
type lease struct {
	Holder   string
	Sequence int
}

// lease returns the lease in a pushed state, the zero value for none.
func (r *rig) lease(t *testing.T, origin, commit string) (l lease) {
	t.Helper()
	if text := r.file(origin, commit, "lease.json"); text != "" {
		must(t, json.Unmarshal([]byte(text), &l))
	}
	return l
}

// file returns a file of a pushed state, "" if it has no such file.
func (r *rig) file(origin, commit, name string) string {
	r.Helper()
	if r.Git("", "--git-dir", origin, "ls-tree", "--name-only", commit, name) == "" {
		return ""
	}
	return r.Git("", "--git-dir", origin, "show", commit+":"+name)
}

// refs fails the test if a push took commits from a ref, or took the lease of another holder before it expired.
// The origin logs all pushes with the time of this machine.
func (r *rig) refs(t *testing.T, origin string) {
	t.Helper()
	logs := filepath.Join(origin, "logs")
	must(t, filepath.WalkDir(logs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		var before lease
		var at time.Time
		for line := range strings.Lines(string(data)) {
			words := strings.Fields(line[:strings.Index(line+"\t", "\t")])
			was, is := words[0], words[1]
			if strings.Trim(was, "0") != "" && r.Git("", "--git-dir", origin, "merge-base", was, is) != was {
				t.Errorf("%s: the commit after %s: got %s, want a descendant", path, was, is)
			}
			if !strings.HasSuffix(path, "refs/abl/state") {
				continue
			}
			seconds, err := strconv.ParseInt(words[len(words)-2], 10, 64)
			must(t, err)
			l, now := r.lease(t, origin, is), time.Unix(seconds, 0)
			if before.Holder != "" && l.Holder != "" && before.Holder != l.Holder && now.Sub(at) < period-time.Second {
				t.Errorf("%s: the time until %s took the lease of %s: got %s, want %s or more", origin, l.Holder,
					before.Holder, now.Sub(at), period)
			}
			before, at = l, now
		}
		return err
	}))
}

// calls are the calls of a phase in the pushed ledger, each with its outcome.
func (r *rig) calls(origin string, phase int) (all []string) {
	r.Helper()
	for line := range strings.Lines(r.Git("", "--git-dir", origin, "show", "refs/abl/state:tokens.csv")) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if call := f[len(f)-4]; strings.HasPrefix(call, fmt.Sprintf("p%d-", phase)) {
			all = append(all, call+" "+f[len(f)-1])
		}
	}
	return all
}

// agentLog makes the engine log the starts and ends of agents' containers, and returns the file.
func agentLog(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agents")
	f, err := os.Create(path)
	must(t, err)
	cmd := exec.Command("docker", "events", "--filter", "type=container", "--filter", "label=abl.kind=role",
		"--filter", "event=start", "--filter", "event=die", "--format", `{{.Action}} {{with .Actor.Attributes}}`+
			`{{index . "abl.project"}} {{index . "abl.call"}} {{index . "exitCode"}}{{end}}`)
	cmd.Stdout = f
	must(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		f.Close()
	})
	return path
}

// paid fails the test unless the ledger of a project agrees with the engine's log of its agents: each call was
// started once and has a row, a call that is done has ended well, and each role has one of these in each phase.
func (r *rig) paid(t *testing.T, origin, log string) {
	t.Helper()
	holders := map[string]bool{}
	for _, commit := range strings.Fields(r.Git("", "--git-dir", origin, "rev-list", "refs/abl/state")) {
		holders[r.lease(t, origin, commit).Holder] = true
	}
	data, err := os.ReadFile(log)
	must(t, err)
	started, ended := map[string]int{}, map[string]bool{}
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case !holders[words[1]]:
		case words[0] == "start":
			started[words[2]]++
		default:
			ended[words[2]] = words[3] == "0"
		}
	}
	rows, done := map[string]string{}, map[string]int{}
	for _, call := range append(r.calls(origin, 1), r.calls(origin, 2)...) {
		key, outcome, _ := strings.Cut(call, " ")
		if rows[key] != "" {
			t.Errorf("%s: rows of %s in the ledger: got outcomes %q and %q, want one row", origin, key, rows[key],
				outcome)
		}
		rows[key] = outcome
		if outcome == "done" {
			done[key[:strings.LastIndex(key, "-")]]++
			if !ended[key] {
				t.Errorf("%s: agent of %s, which is done in the ledger: got no end with exit code 0, want one",
					origin, key)
			}
		}
	}
	for key, times := range started {
		if times != 1 || rows[key] == "" {
			t.Errorf("%s: the agent of %s: got %d starts and outcome %q, want 1 start and an outcome", origin, key, times,
				rows[key])
		}
	}
	for _, step := range []string{"p1-build", "p1-verify", "p2-build", "p2-verify"} {
		if done[step] != 1 {
			t.Errorf("%s: %s: got %d calls that are done, want 1: %v", origin, step, done[step], rows)
		}
	}
}

// clean removes what killed runs left, and fails the test if something stays. A clone that was removed is
// cloned again for that.
func (r *rig) clean(t *testing.T) {
	t.Helper()
	for _, path := range r.left(t) {
		if _, err := os.Lstat(path); err != nil {
			run(t, "", "git", "clone", "-q", r.origins[0], path) // any project will do
		}
		p := &lab.Project{TB: t, Dir: path}
		p.Must(0, "clean")
	}
	r.empty(t)
}

// left returns the clones that have left something on the engine.
func (r *rig) left(t *testing.T) (all []string) {
	t.Helper()
	for _, kind := range [][]string{{"ps", "-a"}, {"volume", "ls"}, {"network", "ls"}} {
		out := run(t, "", "docker", append(kind, "--filter", "label=abl.dir", "--format", `{{.Label "abl.dir"}}`)...)
		for line := range strings.Lines(out) {
			_, path, _ := strings.Cut(strings.TrimSpace(line), ":")
			if strings.HasPrefix(path, r.dir) && !slices.Contains(all, path) {
				all = append(all, path)
			}
		}
	}
	return all
}

// empty fails the test if something is left on the engine.
func (r *rig) empty(t *testing.T) {
	t.Helper()
	if left := r.left(t); len(left) > 0 {
		t.Errorf("clones that left something on the engine: got %q, want none", left)
	}
}

// obey makes the cluster kill or lose a node for each line that programs write to a named pipe.
func (r *rig) obey(t *testing.T) {
	t.Helper()
	path := filepath.Join(r.dir, "pipe")
	run(t, "", "mkfifo", path)
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // without an end after each writer
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			command, node, _ := strings.Cut(lines.Text(), " ")
			for _, command := range []string{command, "start"} {
				if out, err := exec.Command("../../scripts/slurm.sh", command, r.slurm, node).CombinedOutput(); err != nil {
					t.Errorf("%s %s: %v\n%s", command, node, err, out)
				}
			}
		}
	}()
	t.Cleanup(func() {
		pipe.Close()
		<-done
	})
}

// TestKills: abl, containers, clones, daemons of nodes and nodes are killed at random places. All phases pass, no
// call is paid for twice, no ref goes back, no two leases overlap, and nothing is left.
func TestKills(t *testing.T) {
	for round := range 10 {
		t.Run(fmt.Sprint("round ", round+1), func(t *testing.T) {
			r := newRig(t, 3, 20, "killed")
			t.Cleanup(func() { r.clean(t) })
			log := agentLog(t)
			r.obey(t)
			await(t, r.submit(t, "1", "2", "--projects", r.projects))
			r.passed(t)
			for _, origin := range r.origins {
				r.paid(t, origin, log)
			}
			kills, _ := os.ReadFile(filepath.Join(r.dir, "kills"))
			t.Logf("%s", bytes.TrimSpace(kills))
		})
	}
}

// TestDaemonIsLost: the daemon of a node is away while its job runs. Slurm starts the job on the other node, too.
// The second run finds the lease, ends with 11, and starts again until the first one has passed.
func TestDaemonIsLost(t *testing.T) {
	r := newRig(t, 1, 20, "split")
	t.Cleanup(func() { r.clean(t) })
	log, pipe := agentLog(t), filepath.Join(r.dir, "pipe")
	run(t, "", "mkfifo", pipe)
	job := r.submit(t, "1", "2", "--projects", r.projects)
	node, err := os.ReadFile(pipe) // waits until abl is paused
	must(t, err)
	run(t, "", "../../scripts/slurm.sh", "kill", r.slurm, strings.TrimSpace(string(node)))
	await(t, job)
	r.passed(t)
	r.paid(t, r.origins[0], log)
	if got := r.runs(t); got[0] != "11" {
		t.Errorf("exit codes of the second run: got %q, want 11 first", got)
	}
}
