package phase

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	"abl/internal/testing/lab"
)

// action is the part of action.yml that the test supports. Other keys are an error.
type action struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Inputs      map[string]struct {
		Description string `yaml:"description"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []actionStep `yaml:"steps"`
	} `yaml:"runs"`
}

type actionStep struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Dir   string            `yaml:"working-directory"`
	Env   map[string]string `yaml:"env"`
}

// runner runs the steps of a composite action in a clone, like GitHub's runner: with separate
// files for paths and outputs, and bash with its options. After a failed step it skips all steps
// but those with always().
type runner struct {
	*lab.Project
	action   action
	inputs   map[string]string
	temp     string
	home     string // the action's folder
	path     string
	outputs  map[string]string // steps.ID.outputs.NAME
	uploaded []string          // files of the artifact
	log      bytes.Buffer
}

var expression = regexp.MustCompile(`\$\{\{ *([^}]*?) *\}\}`)

// fill replaces each ${{ … }} expression.
func (r *runner) fill(text string) string {
	return expression.ReplaceAllStringFunc(text, func(all string) string {
		name := expression.FindStringSubmatch(all)[1]
		switch kind, rest, _ := strings.Cut(name, "."); {
		case kind == "inputs":
			if v, ok := r.inputs[rest]; ok {
				return v
			}
			in, ok := r.action.Inputs[rest]
			if !ok {
				r.Fatalf("action.yml: got no input %q, want one", rest)
			}
			return in.Default
		case name == "github.action_path":
			return r.home
		case name == "github.action_repository": // empty in a step's environment
			return "o/abl"
		case name == "runner.temp":
			return r.temp
		case kind == "steps":
			return r.outputs[name]
		}
		r.Fatalf("unknown expression ${{ %s }}", name)
		return ""
	})
}

// wanted reports whether a step runs.
func (r *runner) wanted(s actionStep, failed bool) bool {
	switch s.If {
	case "":
		return !failed
	case "always()":
		return true
	case "inputs.version == ''":
		return !failed && r.fill("${{ inputs.version }}") == ""
	}
	r.Fatalf("%s: unknown condition %s", s.Name, s.If)
	return false
}

// play runs all steps and returns the exit code of the job.
func (r *runner) play() (code int) {
	r.Helper()
	for i, s := range r.action.Runs.Steps {
		if !r.wanted(s, code != 0) {
			continue
		}
		if s.Uses != "" {
			r.use(s)
			continue
		}
		if s.Shell != "bash" {
			r.Fatalf("shell of the step %s: got %q, want bash", s.Name, s.Shell)
		}
		if c := r.run(s, fmt.Sprintf("%s/step%d", r.temp, i)); c != 0 && code == 0 {
			code = c
		}
	}
	return code
}

// use simulates a third-party action by its documentation.
func (r *runner) use(s actionStep) {
	switch name, _, _ := strings.Cut(s.Uses, "@"); name {
	case "actions/setup-go":
		if _, err := os.Stat(r.fill(s.With["go-version-file"])); err != nil {
			r.Error(err)
		}
	case "actions/upload-artifact":
		r.uploaded = nil
		for place := range strings.Lines(r.fill(s.With["path"])) {
			place = strings.TrimSpace(place)
			if !filepath.IsAbs(place) {
				place = filepath.Join(r.Dir, place)
			}
			_ = filepath.WalkDir(place, func(path string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() && (s.With["include-hidden-files"] == "true" || !strings.Contains(path, "/.")) {
					r.uploaded = append(r.uploaded, path)
				}
				return nil
			})
		}
	default:
		r.Fatalf("unknown action %s", s.Uses)
	}
}

func (r *runner) run(s actionStep, file string) int {
	r.Helper()
	for name, text := range map[string]string{".sh": s.Run, ".path": "", ".out": ""} {
		if err := os.WriteFile(file+name, []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file+".sh")
	cmd.Dir = filepath.Join(r.Dir, r.fill(s.Dir))
	cmd.Env = append(r.Cmd().Environ(), "PATH="+r.path, "GITHUB_ACTIONS=true", "GITHUB_ACTION_PATH="+r.home,
		"RUNNER_TEMP="+r.temp,
		"GITHUB_PATH="+file+".path", "GITHUB_OUTPUT="+file+".out", "GITHUB_STEP_SUMMARY="+r.temp+"/summary.md",
		"GITHUB_SERVER_URL=file://"+r.temp+"/server", "GITHUB_ACTION_REPOSITORY=")
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+r.fill(value))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	r.Logf("%s (%v)\n%s", s.Name, err, out.String())
	r.log.Write(out.Bytes())
	if ended := new(exec.ExitError); err != nil && !errors.As(err, &ended) {
		r.Fatal(err)
	}
	if more, _ := os.ReadFile(file + ".path"); len(more) > 0 {
		r.path = strings.TrimSpace(string(more)) + ":" + r.path
	}
	data, _ := os.ReadFile(file + ".out")
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		r.outputs["steps."+s.ID+".outputs."+name] = value
	}
	return cmd.ProcessState.ExitCode()
}

// output returns an output of the action.
func (r *runner) output(name string) string { return r.fill(r.action.Outputs[name].Value) }

// release creates the files of a release of abl at the address that the action uses.
func (r *runner) release(version string) {
	r.Helper()
	dir := filepath.Join(r.temp, "server/o/abl/releases/download", version)
	top := fmt.Sprintf("abl-%s-linux-%s", version, runtime.GOARCH)
	cmd := exec.Command("sh", "testdata/scripts/packs-a-release.sh", dir, top, filepath.Dir(lab.Bin(r, "abl")))
	if out, err := cmd.CombinedOutput(); err != nil {
		r.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, top+".tar.gz"))
	if err != nil {
		r.Fatal(err)
	}
	sums := fmt.Sprintf("%x  abl-other.tar.gz\n%x  %s.tar.gz\n", sha256.Sum256(nil), sha256.Sum256(data), top)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums), 0o644); err != nil {
		r.Fatal(err)
	}
}

// source prepares the action's own folder, where make finds everything built.
func (r *runner) source() {
	r.Helper()
	for name, text := range map[string]string{
		"go.mod":   "module abl\n",
		"Makefile": "build:\n\tcp -r " + filepath.Dir(lab.Bin(r, "abl")) + " bin\n",
	} {
		if err := os.WriteFile(filepath.Join(r.home, name), []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
}
