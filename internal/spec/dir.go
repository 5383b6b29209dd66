package spec

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/hostfs"
)

// MaxPhase is the highest phase number.
const MaxPhase = 9999

// Set is the set of all specs of a project.
type Set struct {
	dir      string
	numbers  []int // of all spec files, also invalid ones, ascending
	specs    map[int]Spec
	problems []Problem

	idText   string          // the content of IDFile
	known    []entry         // of IDFile
	assigned map[int][]entry // the entries of each phase with its current contracts; nil if IDFile is damaged
	lost     map[int]bool    // phases that lost a contract since IDFile was written
}

// LoadDir reads the files phase<N>.md of a directory. It gives each contract its id from IDFile,
// but writes nothing. It never follows links and ignores other files with a warning. It returns the
// problems of all files. Set.Check selects those that concern a phase.
func LoadDir(dir string) (Set, []Problem) {
	s := Set{dir: dir, specs: map[int]Spec{}}
	names, err := hostfs.Names(dir, ".", 10*MaxPhase)
	switch {
	case errors.Is(err, hostfs.ErrAbsent):
		err = errors.New("the directory does not exist")
	case errors.Is(err, hostfs.ErrNotRegular):
		err = errors.New("it is a link, or not a directory")
	}
	if err != nil {
		s.report("", 0, "directory", err.Error(), "put the specs there as phase1.md, phase2.md, …")
		return s, s.problems
	}
	for _, name := range names {
		s.readFile(name)
	}
	slices.Sort(s.numbers)
	s.gaps()
	s.identify()
	return s, s.problems
}

// Keep writes the ids of phases 1 to n to IDFile, so that they survive edits of the specs. Call it
// before a phase runs.
func (s Set) Keep(n int) error {
	if len(s.assigned) == 0 {
		return nil
	}
	all := slices.Clone(s.known)
	for number, now := range s.assigned {
		if number == n || number < n && !s.lost[number] { // report a loss until that phase runs again
			all = append(slices.DeleteFunc(all, func(e entry) bool { return e.phase == number }), now...)
		}
	}
	text := renderIDs(all)
	if text == s.idText {
		return nil
	}
	if err := hostfs.Write(s.path(IDFile), []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot save the ids of the contracts: %w", err)
	}
	return nil
}

func (s Set) path(name string) string { return filepath.Join(s.dir, name) }

// specName matches the name of a spec and similar names. If phase01.md next to phase1.md were
// ignored, users would miss it.
var specName = regexp.MustCompile(`(?i)^phase[-_ ]?0*(\d+)\.(?:md|markdown|txt)$`)

func fileOf(n int) string { return fmt.Sprintf("phase%d.md", n) }

// readFile reads the file with this name if it is a spec.
func (s *Set) readFile(name string) {
	m := specName.FindStringSubmatch(name)
	if m == nil {
		if !strings.HasPrefix(name, ".") && name != IDFile {
			s.report(name, 0, "not-a-spec", "this file is not a spec and is ignored", "name specs phase1.md, phase2.md, …")
		}
		return
	}
	n, _ := strconv.Atoi(m[1])
	if n > MaxPhase {
		n = 0 // stops every phase
	}
	if n == 0 || name != fileOf(n) {
		s.report(name, n, "name",
			fmt.Sprintf("the name must be phaseN.md in lower case, with N from 1 to %d without leading zeros", MaxPhase),
			"rename it to "+fileOf(max(n, 1))+", or move it out of the directory")
		return
	}
	s.numbers = append(s.numbers, n)
	data, err := hostfs.Read(s.dir, name, MaxBytes)
	if err != nil {
		s.report(name, n, "unreadable", err.Error(), "a spec is a regular file of at most 1 MiB")
		return
	}
	s.parse(n, data)
}

// parse parses the text of spec n.
func (s *Set) parse(n int, data []byte) {
	spec, problems := Parse(s.path(fileOf(n)), data, n)
	s.problems = append(s.problems, problems...)
	delete(s.specs, n)
	if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Fatal }) {
		s.specs[n] = spec
	}
}

// gaps reports the first missing phase number.
func (s *Set) gaps() {
	if len(s.numbers) == 0 {
		s.report("", 0, "no-spec", "there is no spec", `write phase1.md, with the first line "# Phase 1: Title"`)
	}
	for i, n := range s.numbers {
		if n > i+1 {
			s.report("", i+1, "gap", fmt.Sprintf("%s is missing, but %s exists", fileOf(i+1), fileOf(n)),
				"number the phases without a gap")
			return
		}
	}
}

func (s *Set) report(name string, phase int, code, text, hint string) {
	fatal := code != "not-a-spec"
	s.problems = append(s.problems, Problem{
		File:  s.path(name),
		Phase: phase,
		Code:  code,
		Text:  text,
		Hint:  hint,
		Fatal: fatal,
	})
}

// Phase returns the spec of phase n. It returns false if there is no valid one.
func (s Set) Phase(n int) (Spec, bool) {
	spec, ok := s.specs[n]
	return spec, ok
}

// UpTo returns the valid specs of phases 1 to n, in order.
func (s Set) UpTo(n int) []Spec {
	var specs []Spec
	for _, number := range s.numbers {
		if spec, ok := s.specs[number]; ok && number <= n {
			specs = append(specs, spec)
		}
	}
	return specs
}

// With returns a copy of the set with another text for the spec of phase n. Its problems are only
// those of that text.
func (s Set) With(n int, text []byte) Set {
	now := Set{dir: s.dir, specs: maps.Clone(s.specs), numbers: s.numbers}
	now.parse(n, text)
	return now
}

// Numbers returns the phases with a spec file, also an invalid one, ascending.
func (s Set) Numbers() []int { return slices.Clone(s.numbers) }

// Problems returns all problems found while reading the specs, as LoadDir returned them.
func (s Set) Problems() []Problem { return slices.Clone(s.problems) }

// Check returns the problems that prevent phase n from starting: those of its spec, of earlier
// specs and of the numbering. UpTo(n) is complete if it returns none.
func (s Set) Check(n int) []Problem {
	stops := Set{dir: s.dir}
	if n < 1 || n > MaxPhase {
		stops.report("", n, "gap", fmt.Sprintf("%d is not a phase: they are numbered from 1 to %d", n, MaxPhase), "")
		return stops.problems
	}
	stops.problems = slices.DeleteFunc(s.Problems(), func(p Problem) bool { return !p.Fatal || p.Phase > n })
	if last := len(s.numbers); len(stops.problems) == 0 && !slices.Contains(s.numbers, n) {
		stops.report("", n, "gap", fmt.Sprintf("phase %d has no spec, the last one is %s", n, fileOf(last)),
			"write "+fileOf(last+1))
	}
	return stops.problems
}
