package submit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
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
	exit    *int // nil before it has ended
}

// row is one phase of one project, as `abl submit status --json` prints it.
type row struct {
	Project string        `json:"project"`
	Phase   *int          `json:"phase,omitempty"`
	Status  string        `json:"status,omitempty"`
	Job     string        `json:"job,omitempty"`
	State   string        `json:"state,omitempty"`
	Node    string        `json:"node,omitempty"`
	Cost    *ledger.Money `json:"cost_usd,omitempty"`
	Exit    *int          `json:"exit,omitempty"`
}

// status prints a row for each phase of the projects.
func status(ctx context.Context, s *project.Project) error {
	on, err := systemOf(s.In.String("on"))
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
		t.Rows = append(t.Rows,
			[]string{r.Project, cell(r.Phase), r.Status, r.Job, r.State, r.Node, cell(r.Cost), cell(r.Exit)})
	}
	return s.In.ShowTable(rows, t)
}

// cell returns the text of a value, "" for none.
func cell[T any](v *T) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(*v)
}

// rowsOf returns the rows of one project. The newest job of the project goes with the phase that has not
// passed, or with the last one.
func rowsOf(ctx context.Context, s *project.Project, of target, jobs []job) (rows []row, err error) {
	remote, err := s.StateAt(ctx, of.repository)
	if err != nil {
		return nil, fmt.Errorf("cannot read the state of %s: %w", of.repository, err)
	}
	name := strings.TrimSuffix(of.repository+" "+of.directory, " .")
	for _, n := range remote.Begun() {
		status := remote.Phase(n).Status
		r := row{Project: name, Phase: &n, Status: string(status)}
		if sum := remote.Used.Phase(n); sum != nil {
			r.Cost = &sum.Cost
		}
		if code, ended := codes[status]; ended {
			r.Exit = &code
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		rows = append(rows, row{Project: name})
	}
	at := slices.IndexFunc(rows, func(r row) bool { return r.Status != string(state.Passed) })
	if at < 0 {
		at = len(rows) - 1
	}
	for _, j := range jobs {
		if j.project == of {
			rows[at].Job, rows[at].State, rows[at].Node = j.id, j.state, j.node
			rows[at].Exit = cmp.Or(j.exit, rows[at].Exit)
		}
	}
	rows[at].Node = cmp.Or(rows[at].Node, remote.Host)
	return rows, nil
}

// codes are the exit codes of phases that have ended.
var codes = map[state.Status]int{state.Passed: exit.Passed, state.Stuck: exit.Stuck, state.Unverified: exit.Unverified}

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

// slurmDone are the states of Slurm jobs that have ended. In all others, such as CONFIGURING or
// SUSPENDED, the exit code is 0.
var slurmDone = strings.Fields("BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT")

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
				ended := on.name != "slurm" || slices.Contains(slurmDone, f[3])
				if code, err := strconv.Atoi(f[5]); err == nil && ended {
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
