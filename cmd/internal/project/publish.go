package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/redact"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
)

// The refs in the user's repository that are not branches of phases.
const (
	sourceRef = "refs/abl/source" // the branch of the last phase, in case that branch is deleted
	testsRef  = "refs/abl/tests"
	stateRef  = "refs/abl/state"
)

// Published is a ref that was published.
type Published struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
}

// exchange publishes and pulls between a project and the user's repository.
type exchange struct {
	*Project
	repo *git.Origin
	file *state.File
	tip  string // what stateRef names, "" for nothing

	lease   *lease // that the state is published with, nil for none
	release bool   // the lease of the published state ends
}

func (s *Project) exchange() (x exchange, err error) {
	x.Project = s
	if x.repo, err = s.Adopted(); err != nil {
		return x, err
	}
	if x.tip, err = x.repo.Ref(stateRef); err == nil {
		x.file, err = s.State()
	}
	return x, err
}

// isWhatPassed refuses the branch of a phase that passed if its last commit has other files than
// the commit that passed. Run reports are not compared.
func (x exchange) isWhatPassed(src *git.Repo, phase int, tip string) error {
	p := x.file.Phase(phase)
	if p.Status != state.Passed || p.SrcCommit == "" || tip == "" || tip == p.SrcCommit {
		return nil
	}
	passed, err1 := src.TreeKey(p.SrcCommit, roles.Builder.Reports)
	is, err2 := src.TreeKey(tip, roles.Builder.Reports)
	if err := errors.Join(err1, err2); err != nil || passed == is {
		return err
	}
	err := fmt.Errorf("branch %s of the source ends with commit %.12s, which has other files than commit %.12s, "+
		"which passed", Branch(phase), tip, p.SrcCommit)
	hint := fmt.Sprintf("abl phase %d --again verifies it; git -C %s reset --hard %.12s takes it back", phase,
		x.Paths.Rel(x.Paths.Src), p.SrcCommit)
	return exit.With(exit.Person, err, hint)
}

// Publish writes the branches of the phases that have begun, or only of phase n, the tests and the state
// to the user's repository. It only moves refs forward.
func (s *Project) Publish(ctx context.Context, n int) (all []Published, err error) {
	x, err := s.exchange()
	if err != nil {
		return nil, err
	}
	phases := slices.DeleteFunc(x.file.Begun(), func(k int) bool { return n != 0 && k != n })
	if len(phases) == 0 {
		err = errors.New("cannot publish: no phase has begun yet, or not this one")
		return nil, exit.With(exit.Usage, err, "abl status lists the phases")
	}
	if at := x.repo.InTheWay(s.prefix()); at != "" {
		err := fmt.Errorf("cannot publish: git does not allow branch %s because branch %s exists",
			s.PublishedBranch(phases[0]), at)
		return nil, exit.With(exit.Usage, err, "set publish.prefix in .abl/config.yaml, for example to abl-work/")
	}
	if err := x.upToDate(); err != nil {
		return nil, err
	}
	if n == 0 {
		phases = slices.DeleteFunc(phases, x.isDeleted)
	}
	return x.bring(ctx, phases)
}

// AutoPublish publishes all phases and prints the refs on stderr.
func AutoPublish(ctx context.Context, s *Project) error {
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := s.Publish(ctx, 0)
	for _, p := range all {
		s.In.Say("%s is at %.12s", p.Ref, p.Commit)
	}
	return err
}

// Unpublished reports whether the project works on a repository of the user that lacks its state.
func (s *Project) Unpublished() bool {
	if s.Conf.Source.Repo == "" {
		return false
	}
	x, err := s.exchange()
	if err != nil || x.tip == "" {
		return true
	}
	same, err := x.standsAt(x.tip)
	return err != nil || !same
}

// isDeleted reports whether the branch of a phase was published and deleted since, as after a merge.
func (x exchange) isDeleted(phase int) bool {
	p := x.file.Phase(phase)
	at, err1 := x.newest(x.PublishedBranch(phase), "")
	source, err2 := x.repo.Ref(sourceRef)
	if errors.Join(err1, err2) != nil || at != "" || source == "" || p.Status != state.Passed {
		return false
	}
	has, err := x.repo.Contains(source, p.SrcCommit)
	return err == nil && has
}

// moves reports whether a branch of a phase has to move to tip. Commits that the user added to it stay: abl gets
// them when the user's own branch has them.
func (x exchange) moves(src *git.Repo, branch, tip string) (bool, error) {
	at, err := x.newest(branch, tip)
	if err != nil || tip == "" || at == "" || at == tip {
		return tip != "", err
	}
	if has, err := x.repo.Contains(at, tip); err != nil || has {
		return false, err
	}
	later, err := src.Contains(tip, at)
	if err == nil && !later {
		x.In.Warn(fmt.Sprintf("%s stays at %.12s, which has commits that the phase does not have: git branch -m renames it",
			branch, at))
	}
	return later, err
}

// bring moves the refs of phases, source, tests and state in the user's repository to the results of the phases.
func (x exchange) bring(ctx context.Context, phases []int) (all []Published, err error) {
	receive := func(from *git.Repo, ref, commit string) error {
		if commit == "" {
			return nil
		}
		err := x.repo.Receive(ctx, from, ref, commit)
		if err == nil {
			all = append(all, Published{ref, commit})
		}
		return err
	}
	if err = x.forward(ctx); err == nil && isRepository(x.Paths.Src) {
		err = x.bringSource(phases, receive)
	}
	if err == nil && isRepository(x.Paths.Tests) {
		var at git.Commit
		tests, terr := git.Open(x.Paths.Tests, git.Options{})
		if err = terr; err == nil {
			at, _, err = tests.Head()
		}
		if err == nil {
			err = receive(tests, testsRef, at.Hash)
		}
	}
	if err == nil {
		err = x.keepState(ctx)
	}
	if err != nil {
		return all, fmt.Errorf("cannot publish: %w", err)
	}
	return append(all, Published{stateRef, x.file.Published}), nil
}

// bringSource passes the branches of phases to receive, and the last one as sourceRef.
func (x exchange) bringSource(phases []int, receive func(from *git.Repo, ref, commit string) error) error {
	src, err := git.Open(x.Paths.Src, x.SourceOptions())
	if err != nil {
		return err
	}
	every := x.file.Begun()
	for _, k := range every {
		own, last := slices.Contains(phases, k), k == every[len(every)-1]
		if !own && !last {
			continue
		}
		tip, err := src.Ref("refs/heads/" + Branch(k))
		if err == nil {
			err = src.Whole(tip)
		}
		if err == nil {
			err = x.isWhatPassed(src, k, tip)
		}
		if err == nil && own {
			own, err = x.moves(src, x.PublishedBranch(k), tip)
		}
		if err == nil && own {
			err = receive(src, "refs/heads/"+x.PublishedBranch(k), tip)
		}
		if err == nil && last {
			err = receive(src, sourceRef, tip)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// upToDate fails if the published state has work that this project does not have. It accepts a
// state that this project published before it was killed, and one that differs from the state that
// this project knows only in the project's id.
func (x exchange) upToDate() error {
	known := x.file.Published
	if x.tip == "" || x.tip == known {
		return nil
	}
	same, err := x.standsAt(x.tip)
	if err == nil && !same {
		same, err = x.alike(known, x.tip)
	}
	if err == nil && !same {
		err = fmt.Errorf("cannot publish: %s is at %.12s, and this project knows %.12q: %w", stateRef, x.tip, known,
			git.ErrBehind)
	}
	return err
}

// keepState publishes the state. It makes no commit if only the project's id would change, so that a run
// with nothing to do moves no ref.
func (x exchange) keepState(ctx context.Context) error {
	var same bool
	var files map[string][]byte
	var err error
	if x.tip != "" && x.lease == nil && !x.release {
		same, err = x.standsAt(x.tip)
	}
	if err == nil && !same {
		files, err = x.carried()
	}
	at := x.tip
	if err == nil && !same {
		at, err = x.repo.Keep(ctx, stateRef, x.tip, summary(x.file), files)
	}
	if err != nil {
		return err
	}
	x.file.Published = at
	return errors.Join(hostfs.ChownToUser(filepath.Join(x.Paths.Root, x.Conf.Source.Repo), ".git"),
		state.Save(x.Paths.State(), x.file))
}

// summary returns the message of a state's commit.
func summary(f *state.File) string {
	var all []string
	for _, n := range f.Begun() {
		all = append(all, fmt.Sprintf("phase %d %s", n, f.Phase(n).Status))
	}
	if len(all) == 0 {
		return "no phase has begun"
	}
	return strings.Join(all, ", ")
}

// The names under which files are published.
const (
	carriedState   = "state.json"
	carriedLedger  = "tokens.csv"
	carriedReports = "reports"
	carriedCalls   = "calls"
	carriedIDs     = "ids"
)

// places returns the local path of every published file except state.json, by its published name. No other
// file is ever published or pulled.
func (x exchange) places(f *state.File) map[string]string {
	s := x.Project
	all := map[string]string{carriedLedger: s.Paths.Ledger(), carriedIDs: filepath.Join(s.Paths.Specs(), spec.IDFile)}
	for _, n := range f.Begun() {
		p := f.Phase(n)
		for step := 1; step <= p.Step; step++ {
			at := audit.Path(s.Paths, n, step)
			all[path.Join(carriedReports, filepath.Base(filepath.Dir(at)), filepath.Base(at))] = at
		}
		for _, it := range p.History {
			// A call without a verdict is judged here: its finding is not pulled.
			k, ok := roles.ParseKey(it.Call)
			last := p.Step
			if p.OnItsWay() && p.Status != state.Refuted {
				last--
			}
			if ok && k.Role.Name == roles.Verifier.Name && k.Phase == n && k.Step <= last {
				at := filepath.Join(s.Paths.Call(it.Call), roles.FindingFile)
				all[path.Join(carriedCalls, it.Call, roles.FindingFile)] = at
			}
		}
	}
	return all
}

// carried returns the files that let another clone continue: state, ledger, audit records, the
// findings that each verdict is based on, and the ids of contracts. They contain no secret, no
// transcript and no path of this machine.
func (x exchange) carried() (map[string][]byte, error) {
	s, f := x.Project, x.file
	bare := *f
	bare.Root, bare.Owners, bare.Git, bare.Published, bare.Updated = "/", nil, nil, "", time.Time{}
	data, err := json.MarshalIndent(bare, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	files := map[string][]byte{carriedState: data}
	if x.lease != nil {
		files[leaseFile], err = json.Marshal(x.lease)
	}
	for name, at := range x.places(f) {
		data, rerr := hostfs.Read(filepath.Dir(at), filepath.Base(at), maxCarried)
		if rerr == nil {
			files[name] = data
		} else if !errors.Is(rerr, hostfs.ErrAbsent) {
			err = errors.Join(err, rerr)
		}
	}
	for name, data := range files {
		text := strings.ReplaceAll(s.In.Safe.Redact(string(data)), s.Paths.Root, ".")
		files[name] = []byte(text)
	}
	return files, errors.Join(err, neutralize(files))
}

// kept returns the files of a published commit. Any user with push rights may have written them.
func (x exchange) kept(commit string) (map[string][]byte, error) {
	files, err := x.repo.Kept(commit)
	if err == nil {
		err = neutralize(files)
	}
	return files, git.Lacking(err)
}

// neutralize makes published files safe to open in a terminal or a spreadsheet.
func neutralize(files map[string][]byte) (err error) {
	for name, data := range files {
		if name == carriedLedger {
			files[name], err = ledger.Neutral(data)
		} else {
			files[name] = []byte(redact.Whole(string(data)))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

const maxCarried = 64 << 20 // bytes of a file
