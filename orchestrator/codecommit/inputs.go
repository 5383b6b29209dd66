package codecommit

import (
	_ "embed"
	"errors"
	"strings"

	"abl/internal/hostfs"
	"abl/prompts"
)

// mostText is how large a file of the person's may be.
const mostText = 256 << 20

// errMissing is a file that a run cannot do without.
var errMissing = errors.New("cannot find")

// need reads a file that has to be there.
func (p Project) need(name, what, do string) (string, error) {
	data, err := hostfs.Read(p.Root, name, mostText)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		return "", problem(do, "%w %s, %s", errMissing, name, what)
	case err != nil:
		return "", problem("", "%w", err)
	}
	return hostfs.Text(data), nil
}

// codebase reads the code that the model is shown.
func (p Project) codebase() (string, error) {
	do := "make it with ./codeRollup.sh, which " + p.Self + " init writes, or with a script of your own"
	if p.Name == V1 {
		do = "make it with a script of your own"
	}
	text, err := p.need(p.Codebase, "the code rollup", do)
	if err == nil && strings.TrimSpace(text) == "" {
		err = problem(do, "%s, the code rollup, is empty", p.Codebase)
	}
	return text, err
}

// ReadInputs reads what the prompts of a run are made of.
func (p Project) ReadInputs(protected []string) (in Inputs, err error) {
	in.Protected = protected
	if in.Query, err = p.need(p.Query, "the query", "write what you want into it; "+p.Self+" init makes the files"); err == nil {
		in.Codebase, err = p.codebase()
	}
	switch {
	case err != nil:
	case p.Name == V1:
		in.System, err = p.need(p.System, "the system prompt", "write into it what is to be said to the model")
	default:
		if in.Structure, err = p.need(p.Structure, "", ""); errors.Is(err, errMissing) {
			in.Structure, err = prompts.CommitStructure, nil
		}
	}
	return in, err
}

// ReportInputs are what a person asks about, if anything, and the code.
func (p Project) ReportInputs() (in Inputs, err error) {
	for _, name := range []string{p.Query, ConfigDir + "/consistency-query.txt"} { // the last one counts
		query, err := p.need(name, "", "")
		if err == nil && query != firstQuery { // somebody has written into it
			in.Query = query
		} else if err != nil && !errors.Is(err, errMissing) {
			return in, err
		}
	}
	in.Codebase, err = p.codebase()
	return in, err
}

// What init writes.
var (
	//go:embed first/query.txt
	firstQuery string
	//go:embed first/build.sh
	firstBuild string
	//go:embed first/codeRollup.sh
	firstRollup string
)

// FirstFiles are what a project of the protocol v2 needs of the person, as they stand before
// anybody has written into them: paths, each with its text.
func (p Profile) FirstFiles() [][2]string {
	return [][2]string{{p.Query, firstQuery}, {p.Structure, prompts.CommitStructure}, {Script, firstBuild}, {"codeRollup.sh", firstRollup}}
}

// Untouched says which of init's files a person still has to write: a run with them
// would cost money and come to nothing.
func (p Project) Untouched(query string, dry bool) error {
	const write = "write into it what you want changed"
	if strings.TrimSpace(query) == "" {
		return problem(write, "%s is empty", p.Query)
	}
	if query == firstQuery {
		return problem(write, "%s is as init wrote it", p.Query)
	}
	data, err := hostfs.Read(p.Root, Script, int64(len(firstBuild)))
	if err == nil && string(data) == firstBuild && !dry {
		return problem("write into it how this project is built and tested", "build.sh is as init wrote it, so no build can pass")
	}
	return nil
}
