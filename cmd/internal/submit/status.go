package submit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/state"
)

// job is a job of the scheduler.
type job struct {
	project target
	id      string
	state   string // in the scheduler's words
	node    string
	exit    *int // nil while it runs
}

// row is one phase of one project, as `abl submit status --json` prints it.
type row struct {
	Project string        `json:"project"`
	Phase   int           `json:"phase,omitempty"`
	Status  string        `json:"status,omitempty"`
	Job     string        `json:"job,omitempty"`
	State   string        `json:"state,omitempty"`
	Node    string        `json:"node,omitempty"`
	Cost    *ledger.Money `json:"cost_usd,omitempty"`
	Exit    *int          `json:"exit,omitempty"`
}

// status prints a row for each phase of the projects.
func status(ctx context.Context, s *project.Project) error {
	on, err := chosen(s.In)
	if err != nil {
		return err
	}
	all, err := targets(ctx, s)
	if err != nil {
		return err
	}
	jobs, err := on.jobs(ctx, all)
	if err != nil {
		return err
	}
	rows, t := []row{}, view.Table{Header: strings.Fields("PROJECT PHASE STATUS JOB STATE NODE COST EXIT"), Flex: 0}
	for _, of := range all {
		found, err := rowsOf(ctx, s, of, jobs)
		if err != nil {
			return err
		}
		rows = append(rows, found...)
	}
	for _, r := range rows {
		cells := []string{r.Project, "", r.Status, r.Job, r.State, r.Node, "", ""}
		if r.Phase > 0 {
			cells[1] = strconv.Itoa(r.Phase)
		}
		if r.Cost != nil {
			cells[6] = r.Cost.String()
		}
		if r.Exit != nil {
			cells[7] = strconv.Itoa(*r.Exit)
		}
		t.Rows = append(t.Rows, cells)
	}
	return s.In.ShowTable(rows, t)
}

// rowsOf returns the rows of one project. The newest job of the project goes with the phase that has not
// passed, or with the last one.
func rowsOf(ctx context.Context, s *project.Project, of target, jobs []job) (rows []row, err error) {
	remote, err := fetch(ctx, of.repository)
	if err != nil {
		return nil, err
	}
	for _, n := range remote.phases() {
		p := remote.file.Phase(n)
		r := row{Project: of.repository, Phase: n, Status: string(p.Status), Cost: remote.cost(s, n)}
		if code, ended := codes[p.Status]; ended {
			r.Exit = &code
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		rows = append(rows, row{Project: of.repository})
	}
	if of.directory != "." {
		for i := range rows {
			rows[i].Project += " " + of.directory
		}
	}
	at := slices.IndexFunc(rows, func(r row) bool { return r.Status != string(state.Passed) })
	if at < 0 {
		at = len(rows) - 1
	}
	for _, j := range jobs {
		if j.project == of {
			rows[at].Job, rows[at].State, rows[at].Node = j.id, j.state, j.node
			if j.exit != nil {
				rows[at].Exit = j.exit
			}
		}
	}
	if rows[at].Node == "" {
		rows[at].Node = remote.host
	}
	return rows, nil
}

// codes are the exit codes of phases that have ended.
var codes = map[state.Status]int{state.Passed: exit.Passed, state.Stuck: exit.Stuck, state.Unverified: exit.Unverified}

// published is the state that a remote holds.
type published struct {
	file *state.File
	host string // that holds the lease, "" for none
	rows []ledger.Row
}

const stateRef = "refs/abl/state"

// fetch reads the state that a repository holds. A repository without one has no phases.
func fetch(ctx context.Context, repository string) (p published, err error) {
	p.file = state.New("/")
	dir, err := os.MkdirTemp("", "abl-status-")
	if err != nil {
		return p, err
	}
	defer os.RemoveAll(dir)
	refs, err := output(proc.GitRemote(ctx, dir, "ls-remote", "--", repository, stateRef))
	if err != nil || refs == "" {
		return p, err
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"fetch", "-q", "--depth=1", "--no-tags", "--", repository, stateRef + ":" + stateRef},
	} {
		if _, err := output(proc.GitRemote(ctx, dir, args...)); err != nil {
			return p, err
		}
	}
	copied, err := git.OpenOrigin(dir)
	if err != nil {
		return p, err
	}
	if err := p.read(copied, filepath.Join(dir, "tokens.csv")); err != nil {
		return p, fmt.Errorf("%s: %w", repository, err)
	}
	return p, nil
}

// read reads the published state, and copies its ledger to a file.
func (p *published) read(from *git.Origin, file string) error {
	commit, err := from.Ref(stateRef)
	if err != nil {
		return err
	}
	files, err := from.Kept(commit)
	if err != nil {
		return err
	}
	var lease struct{ Host string }
	_ = json.Unmarshal(files["lease.json"], &lease) // without it the host is unknown
	p.host = lease.Host
	if p.file, err = state.Decode(files["state.json"]); err != nil {
		return err
	}
	data, has := files["tokens.csv"]
	if !has {
		return nil
	}
	if err := hostfs.Write(file, data, 0o600); err != nil {
		return err
	}
	return ledger.Open(file).Scan(func(r ledger.Row) { p.rows = append(p.rows, r) }, func(int, string) {})
}

// phases returns the phases that have begun, in order.
func (p published) phases() (all []int) {
	for key, of := range p.file.Phases {
		if n, err := strconv.Atoi(key); err == nil && of.Round > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// cost returns what the calls of a phase cost.
func (p published) cost(s *project.Project, n int) *ledger.Money {
	totals := s.Totals()
	for _, r := range p.rows {
		if r.Phase == strconv.Itoa(n) {
			totals.Add(r)
		}
	}
	cost := totals.Account().All.Cost
	return &cost
}

// The commands that print a line for each job, oldest first: name of the job or label of the project, index in
// an array job, id, state, node and exit code. Slurm forgets a job some minutes after its end (MinJobAge).
var (
	slurmJobs = []string{"squeue", "--me", "--noheader", "--array", "--states=all", "--sort=i",
		"--Format=Name:|,ArrayTaskID:|,JobArrayID:|,State:|,NodeList:|,exit_code:|"}
	kubernetesJobs = []string{"kubectl", "get", "pods", "-l", "app.kubernetes.io/name=abl",
		"--sort-by=.metadata.creationTimestamp", "-o", `jsonpath={range .items[*]}{.metadata.labels.abl/project}||` +
			`{.metadata.name}|{.status.phase}|{.spec.nodeName}|` +
			`{.status.containerStatuses[?(@.name=="abl")].state.terminated.exitCode}|{"\n"}{end}`}
)

// jobs asks a scheduler for the jobs of projects, oldest first.
func (on system) jobs(ctx context.Context, all []target) (jobs []job, err error) {
	out, err := output(proc.Command(ctx, on.list[0], on.list[1:]...))
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) < 6 {
			continue
		}
		for i, t := range all {
			if f[0] == t.name() || f[0] == listName(all) && f[1] == strconv.Itoa(i+1) {
				j := job{project: t, id: f[2], state: f[3], node: f[4]}
				running := slices.Contains([]string{"PENDING", "RUNNING", "COMPLETING"}, f[3])
				if code, err := strconv.Atoi(f[5]); err == nil && !running {
					if on.name == "slurm" {
						code >>= 8 // a wait status
					}
					j.exit = &code
				}
				jobs = append(jobs, j)
			}
		}
	}
	return jobs, err
}
