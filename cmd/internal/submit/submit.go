// Package submit hands runs of phases to a scheduler: it fills in a template of the project and gives it
// to sbatch or kubectl. It keeps no record: abl submit status asks the scheduler and the git remotes.
package submit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"abl"
	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/trust"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/state"
)

// system is a scheduler.
type system struct {
	name     string
	template string // file of the project
	quote    func(string) string
	list     []string // command that prints its jobs
}

var systems = []system{
	{"slurm", ".abl/submit/slurm.sh", shellWord, slurmJobs},
	{"kubernetes", ".abl/submit/kubernetes.yaml", jsonText, kubernetesJobs},
}

// Systems returns the names of the schedulers.
func Systems() []string { return []string{systems[0].name, systems[1].name} }

// systemOf returns the scheduler with a name.
func systemOf(name string) (system, error) {
	i := slices.IndexFunc(systems, func(s system) bool { return s.name == name })
	if i < 0 {
		return system{}, cli.WithHint("abl submit --on slurm",
			"cannot submit: name the scheduler with --on slurm or --on kubernetes")
	}
	return systems[i], nil
}

// Template returns the path of a scheduler's template in a project, and abl's own text of it.
func Template(name string) (path string, data []byte, err error) {
	on, err := systemOf(name)
	if err == nil {
		data, err = fs.ReadFile(abl.Template(), "submit/"+filepath.Base(on.template))
	}
	return on.template, data, err
}

// Scripts returns the templates of a project that differ from abl's own. They run on the cluster as the
// user, so the user has to trust them if git tracks them.
func Scripts(root string) (all []config.UserValue) {
	for _, name := range Systems() {
		path, own, err := Template(name)
		text, rerr := hostfs.Read(root, path, maxTemplate)
		if err == nil && rerr == nil && !bytes.Equal(text, own) {
			all = append(all, config.UserValue{Key: "submit." + name, Text: path, File: path, Reads: path,
				Why: "runs on the cluster as you"})
		}
	}
	return all
}

const maxTemplate = 1 << 20 // bytes

// Command is abl submit.
func Command() cli.Command {
	projects := cli.Flag{Name: "projects", Value: "FILE",
		Usage: "a project on each line: its directory, or REPOSITORY [BRANCH [DIRECTORY]]"}
	on := cli.Flag{Name: "on", Value: "SYSTEM", Values: Systems(), Usage: "the scheduler"}
	return cli.Command{
		Name:  "submit",
		Group: cli.Running,
		Args:  "[N...]",
		Usage: "let Slurm or Kubernetes run phases, with the state in the git remote",
		Long: `Fills in the template .abl/submit/slurm.sh or .abl/submit/kubernetes.yaml, which abl init
--submit writes, and gives it to sbatch or kubectl. The job clones the repository and runs
the phases N in order, or all pending ones, with --remote origin (docs/cluster.md).`,
		Examples: "abl init --submit slurm\nabl submit 1 --on slurm\n" +
			"abl submit --on slurm --projects projects.txt\nabl submit status --on slurm",
		Flags: []cli.Flag{on, projects,
			{Name: "dry-run", Usage: "print the filled-in template; submit nothing"},
			cli.JSONFlag(),
		},
		Run: project.Looking(run),
		Subs: []cli.Command{{
			Name:  "status",
			Usage: "show each phase of the projects with its state, node, cost and exit code",
			Long:  "Asks the scheduler for its jobs, and the git remotes for states and ledgers.",
			Flags: []cli.Flag{on, projects, cli.JSONFlag()},
			Run:   project.Looking(status),
		}},
	}
}

// target is a project that a job runs.
type target struct{ repository, branch, directory string }

// name returns a name for the jobs of a project: letters, digits and hyphens.
func (t target) name() string {
	base := strings.TrimSuffix(filepath.Base(t.repository), ".git")
	if t.directory != "." {
		base += "-" + filepath.Base(t.directory)
	}
	base = strings.Trim(noName.ReplaceAllString(strings.ToLower(base), "-"), "-")
	return fmt.Sprintf("abl-%s-%.4x", base[:min(len(base), 32)], sha256.Sum256([]byte(lines([]target{t}))))
}

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// lines returns projects as the template for Slurm lists them: a line with three columns for each.
func lines(all []target) string {
	var list []string
	for _, t := range all {
		list = append(list, t.repository+"\t"+t.branch+"\t"+t.directory)
	}
	return strings.Join(list, "\n")
}

// targets returns the projects of --projects, or this one.
func targets(ctx context.Context, s *project.Project) (all []target, err error) {
	file := s.In.String("projects")
	if file == "" {
		t, err := targetOf(ctx, s)
		return []target{t}, err
	}
	data, err := hostfs.Read(filepath.Dir(file), filepath.Base(file), maxTemplate)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot read the projects: %w", err),
			"name a file with a project on each line")
	}
	for i, line := range strings.Split(string(data), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		given := [3]string{1: "main", 2: "."}
		copy(given[:], words)
		t := target{given[0], given[1], given[2]}
		_, none := os.Stat(filepath.Join(t.repository, state.Dir))
		switch {
		case len(words) > 3:
			err = errors.New("want DIRECTORY, or REPOSITORY [BRANCH [DIRECTORY]]")
		case none == nil: // a project on this machine
			var p *project.Project
			if p, err = project.OpenAt(s.In, t.repository); err == nil {
				t, err = targetOf(ctx, p)
			}
		}
		if err != nil {
			return nil, exit.With(exit.Usage, fmt.Errorf("%s:%d: %w", file, i+1, err), "")
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		err = exit.With(exit.Usage, fmt.Errorf("%s names no project", file), "")
	}
	return all, err
}

// targetOf returns the repository, branch and directory of a project on this machine.
func targetOf(ctx context.Context, s *project.Project) (t target, err error) {
	top := git.Around(s.Paths.Root)
	if s.Conf.Source.Repo == "" || top == "" {
		return t, exit.With(exit.Usage, fmt.Errorf("cannot submit %s: it does not work on a git repository", s.Paths.Root),
			"set source.repo in .abl/config.yaml")
	}
	t.directory, _ = filepath.Rel(top, s.Paths.Root) // both are absolute
	remote := cmp.Or(s.Conf.Remote.Name, "origin")
	ask := func(args ...string) string { // without warnings on standard error
		out, _ := proc.Git(ctx, top, args...).Output() // after an error the answer is missing
		return strings.TrimSpace(string(out))
	}
	if t.repository = ask("remote", "get-url", remote); t.repository == "" {
		return t, exit.With(exit.Usage, fmt.Errorf("cannot submit %s: it has no remote %q", s.Paths.Root, remote),
			"git remote add "+remote+" ADDRESS")
	}
	if strings.ContainsFunc(t.repository+t.directory, unicode.IsControl) { // would end its line in the template
		return t, exit.With(exit.Usage, fmt.Errorf("cannot submit %q: the path or the remote %q has a control character",
			s.Paths.Root, t.repository), "")
	}
	if t.branch = ask("branch", "--show-current"); t.branch == "" {
		return t, exit.With(exit.Usage, fmt.Errorf("cannot submit %s: no branch is checked out", s.Paths.Root),
			"git switch main")
	}
	return t, nil
}

func run(ctx context.Context, s *project.Project) error {
	on, err := systemOf(s.In.String("on"))
	if err != nil {
		return err
	}
	for _, arg := range s.In.Args {
		if _, err := project.Number(arg); err != nil {
			return err
		}
	}
	text, err := hostfs.Read(s.Paths.Root, on.template, maxTemplate)
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot read the template: %w", err),
			"abl init --submit "+on.name+" writes it")
	}
	all, err := targets(ctx, s)
	if err != nil {
		return err
	}
	filled, err := fill(on, string(text), all, s.In.Args)
	if err != nil || s.In.Bool("dry-run") {
		fmt.Fprint(s.In.Stdout, filled)
		return err
	}
	if err := trust.Check(ctx, s.In, s.Paths.Root, s.Conf, Scripts(s.Paths.Root)...); err != nil {
		return err
	}
	return give(ctx, s.In, on, filled, all)
}

var placeholder = regexp.MustCompile(`\{\{[a-z]*\}\}`)

// fill replaces the placeholders of a template. A template for Kubernetes is filled in for each project, and
// one for Slurm once with the list of projects.
func fill(on system, text string, all []target, phases []string) (string, error) {
	list := lines(all)
	if on.name == "slurm" {
		all = all[:1]
	}
	var parts []string
	for _, t := range all {
		values := map[string]string{
			"{{name}}": on.quote(t.name()), "{{repository}}": on.quote(t.repository), "{{branch}}": on.quote(t.branch),
			"{{directory}}": on.quote(t.directory), "{{phases}}": on.quote(strings.Join(phases, " ")),
		}
		if on.name == "slurm" {
			values["{{phases}}"], values["{{projects}}"] = strings.Join(phases, " "), list
		}
		var unknown error
		part := placeholder.ReplaceAllStringFunc(text, func(name string) string {
			value, known := values[name]
			if !known {
				unknown = exit.With(exit.Usage, fmt.Errorf("%s: the placeholder %s is unknown", on.template, name),
					"docs/cluster.md lists the placeholders")
			}
			return value
		})
		if unknown != nil {
			return "", unknown
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "---\n"), nil
}

// give hands a filled-in template to the scheduler and prints what it started.
func give(ctx context.Context, in *cli.Input, on system, text string, all []target) error {
	cmd := proc.Command(ctx, "kubectl", "create", "-o", "name", "-f", "-")
	if on.name == "slurm" {
		args := []string{"--parsable", "--job-name=" + listName(all)}
		if len(all) > 1 {
			args = append(args, fmt.Sprintf("--array=1-%d", len(all)))
		}
		cmd = proc.Command(ctx, "sbatch", args...)
	}
	cmd.Stdin = strings.NewReader(text)
	out, err := output(cmd)
	if err != nil {
		return err
	}
	jobs := strings.Fields(out)
	return in.Show(map[string]any{"jobs": jobs, "projects": len(all)}, func(w io.Writer) {
		for _, job := range jobs {
			fmt.Fprintln(w, job)
		}
		hint := "abl submit status --on " + on.name
		if file := in.String("projects"); file != "" {
			hint += " --projects " + file
		}
		in.Say("%s shows the jobs", hint)
	})
}

// output runs a command of the scheduler, and returns its standard output.
func output(cmd *exec.Cmd) (string, error) {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		hint := ""
		if errors.Is(err, exec.ErrNotFound) {
			hint = "run abl where the commands of the scheduler are installed"
		}
		text := fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(errs.Bytes()))
		err = exit.With(exit.Environment, text, hint)
	}
	return string(out), err
}

// listName is the name of a Slurm job for projects.
func listName(all []target) string {
	if len(all) == 1 {
		return all[0].name()
	}
	return fmt.Sprintf("abl-%d-projects-%.4x", len(all), sha256.Sum256([]byte(lines(all))))
}

// shellWord quotes a text for a shell.
func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// jsonText quotes a text as JSON, which is YAML too.
func jsonText(s string) string {
	data, _ := json.Marshal(s) // a string can always be written
	return string(data)
}
