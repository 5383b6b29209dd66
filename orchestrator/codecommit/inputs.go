package codecommit

import (
	"errors"
	"fmt"
	"strings"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
	"abl/prompts"
)

// How large what a person hands in may be.
const (
	maxQuery    = 8 << 20
	maxCodebase = 256 << 20
)

// errMissing is a file that a run cannot do without.
var errMissing = errors.New("cannot find")

// need reads a file that has to be there.
func (p Project) need(name, what, do string, most int64) (string, error) {
	data, err := hostfs.Read(p.Root, name, most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return "", problem(do, "%w %s, %s", errMissing, name, what)
	}
	return hostfs.Text(data), err
}

// codebase reads the code that the model is shown.
func (p Project) codebase() (string, error) {
	do := "make it with ./codeRollup.sh, which " + p.Self + " init writes, or with a script of your own"
	if p.Name == V1 {
		do = "make it with a script of your own"
	}
	text, err := p.need(p.Codebase, "the code rollup", do, maxCodebase)
	if err == nil && strings.TrimSpace(text) == "" {
		err = problem(do, "%s, the code rollup, is empty", p.Codebase)
	}
	return text, err
}

// ReadInputs reads what the prompts of a run are made of.
func (p Project) ReadInputs(protected []string) (in Inputs, err error) {
	in.Protected = protected
	if in.Query, err = p.need(p.Query, "the query", "write what you want into it; "+p.Self+" init makes the files", maxQuery); err != nil {
		return in, err
	}
	if in.Codebase, err = p.codebase(); err != nil {
		return in, err
	}
	if p.System != "" {
		in.System, err = p.need(p.System, "the system prompt", "write into it what is to be said to the model", maxQuery)
		return in, err
	}
	if in.Structure, err = p.need(p.Structure, "", "", maxQuery); errors.Is(err, errMissing) {
		in.Structure, err = prompts.CommitStructure, nil
	}
	return in, err
}

// CheckIgnored makes sure that git leaves out the folder that holds the keys.
func (p Project) CheckIgnored() error {
	const most = 1 << 20
	data, err := hostfs.Read(p.Root, ".gitignore", most)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return err
	}
	covered, again := false, ""
	for i, l := range strings.Split(strings.TrimPrefix(string(data), "\ufeff"), "\n") {
		l = strings.TrimRight(l, " \t\r")
		if strings.TrimSuffix(strings.TrimPrefix(l, "/"), "/") == ConfigDir {
			covered, again = true, ""
		}
		if pattern, negated := strings.CutPrefix(l, "!"); negated && mayInclude(pattern) {
			again = fmt.Sprintf(".gitignore line %d, %q, includes /%s again, where the keys are", i+1, l, ConfigDir)
		}
	}
	do := "add a line /agent-config to the end of .gitignore; " + p.Self + " init does"
	switch {
	case again != "":
		return problem(do, "%s", again)
	case !covered:
		return problem(do, ".gitignore has no line /%s, so a commit could carry your keys away", ConfigDir)
	}
	return nil
}

// mayInclude says whether a re-including pattern can mean the folder, or what is
// in it: git does not look for exceptions in an ignored folder, but the next
// reader, or the next line, may.
func mayInclude(pattern string) bool {
	first := strings.TrimLeft(pattern, "/")
	first, _, _ = strings.Cut(first, "/")
	if ignore.Exclude([]byte(pattern)).Ignored(ConfigDir, true) {
		return true
	}
	return first == ConfigDir || strings.HasPrefix(ConfigDir, strings.TrimRight(first, "*")) && strings.HasSuffix(first, "*")
}
