package phase

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
)

// Where in the person's repository stands what is not the branch of a phase.
const (
	testsRef = "refs/abl/tests"
	stateRef = "refs/abl/state"
)

// Published is one ref that was brought into the person's repository.
type Published struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`
}

// Publish brings the branches of the phases that have begun, or that of phase n, and the tests
// and the state into the person's repository. A ref moves forward, or it is left.
func (s *Project) Publish(ctx context.Context, n int) (all []Published, err error) {
	to, adopts, err := s.Origin()
	if err == nil && !adopts {
		err = exit.With(exit.Usage, errors.New("cannot publish: this project's source has a history of its own, and no repository around it"), "source.repo in .abl/config.yaml names one; what the source has, git -C "+s.Paths.Rel(s.Paths.Src)+" push brings elsewhere")
	}
	if err != nil {
		return nil, err
	}
	f, err := s.State()
	if err != nil {
		return nil, err
	}
	was, err := to.Ref(stateRef)
	if err == nil && was != f.Published {
		err = fmt.Errorf("%s is at %.12s, and this project knows %q: %w", stateRef, was, short(f.Published), git.ErrBehind)
	}
	if err != nil {
		return nil, told(err)
	}
	src, err1 := git.Open(s.Paths.Src, git.Options{Clone: true, Without: s.withheld()})
	tests, err2 := git.Open(s.Paths.Tests, git.Options{})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	for _, k := range begun(f) {
		if n != 0 && k != n {
			continue
		}
		ref := "refs/heads/" + Branch(k)
		tip, err := src.Ref(ref)
		if err != nil || tip == "" {
			return all, err
		}
		if err := to.Receive(ctx, src, ref, tip); err != nil {
			return all, told(err)
		}
		all = append(all, Published{ref, tip})
	}
	if len(all) == 0 {
		return nil, exit.With(exit.Usage, errors.New("cannot publish: the phase has not begun yet"), "abl status lists the phases")
	}
	if at, ok, err := tests.Head(); err != nil {
		return all, err
	} else if ok {
		if err := to.Receive(ctx, tests, testsRef, at.Hash); err != nil {
			return all, told(err)
		}
		all = append(all, Published{testsRef, at.Hash})
	}
	files, err := s.carried(f)
	if err != nil {
		return all, err
	}
	if f.Published, err = to.Keep(ctx, stateRef, was, summary(f), files); err != nil {
		return all, told(err)
	}
	all = append(all, Published{stateRef, f.Published})
	if err := hostfs.HandOver(filepath.Join(s.Paths.Root, s.Conf.Source.Repo), ".git"); err != nil {
		return all, err
	}
	return all, state.Save(s.Paths.State(), f)
}

// told says what to do about a ref that somebody else has moved.
func told(err error) error {
	if errors.Is(err, git.ErrBehind) || errors.Is(err, git.ErrForeign) && strings.Contains(err.Error(), "moved from") {
		return exit.With(exit.Person, fmt.Errorf("cannot publish: %w", err), "abl pull shows what differs; nothing of yours is lost")
	}
	return err
}

func short(hash string) string { return hash[:min(len(hash), 12)] }

// begun are the phases that have begun, in order.
func begun(f *state.File) (all []int) {
	for key, p := range f.Phases {
		if n, err := strconv.Atoi(key); err == nil && p.Round > 0 {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all
}

// summary is what the commit of a state says.
func summary(f *state.File) string {
	var all []string
	for _, n := range begun(f) {
		all = append(all, fmt.Sprintf("phase %d %s", n, f.Phase(n).Status))
	}
	return strings.Join(all, ", ")
}

// The names under which files are carried.
const (
	carriedState   = "state.json"
	carriedLedger  = "tokens.csv"
	carriedReports = "reports"
	carriedCalls   = "calls"
	carriedIDs     = "ids"
)

// carried are the files that let another clone go on: state, ledger, audit records, what each
// verdict stood on, and the ids of contracts. No secret, no transcript and no path of this
// machine is among them.
func (s *Project) carried(f *state.File) (map[string][]byte, error) {
	bare := *f
	bare.Root, bare.Lease, bare.Git, bare.Published, bare.Updated = "/", nil, nil, "", time.Time{}
	data, err := json.MarshalIndent(bare, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	files := map[string][]byte{carriedState: data}
	read := func(as, dir, name string) error {
		data, err := hostfs.Read(dir, name, maxCarried)
		if err == nil {
			files[as] = data
		}
		if errors.Is(err, hostfs.ErrAbsent) {
			return nil
		}
		return err
	}
	err = errors.Join(read(carriedLedger, s.Paths.Logs(), filepath.Base(s.Paths.Ledger())), read(carriedIDs, s.Paths.Specs(), spec.IDFile))
	for _, n := range begun(f) {
		name := fmt.Sprintf("phase%d", n)
		records, lerr := hostfs.List(s.Paths.Reports(), name, maxFiles)
		if err = errors.Join(err, lerr); errors.Is(lerr, hostfs.ErrAbsent) {
			err = nil
		}
		for _, r := range records {
			err = errors.Join(err, read(path.Join(carriedReports, name, r.Name), filepath.Join(s.Paths.Reports(), name), r.Name))
		}
		for _, it := range f.Phase(n).History {
			err = errors.Join(err, read(path.Join(carriedCalls, it.Call, roles.FindingFile), s.Paths.Call(it.Call), roles.FindingFile))
		}
	}
	for name, data := range files {
		text := strings.ReplaceAll(s.In.Safe.Redact(string(data)), s.Paths.Root, ".")
		files[name] = []byte(text)
	}
	return files, err
}

const (
	maxCarried = 64 << 20 // bytes of a file
	maxFiles   = 10_000
)

// Pull restores from the person's repository what was published there, or last fetched into
// it, and says what that is. What is here is kept when it went on by itself: then an error says
// so. With theirs it is put aside.
func (s *Project) Pull(ctx context.Context, theirs bool) (text string, err error) {
	from, adopts, err := s.Origin()
	if err != nil {
		return "", err
	}
	tip := ""
	if adopts {
		tip, err = from.Ref(stateRef)
	}
	if err == nil && tip == "" {
		err = exit.With(exit.Usage, fmt.Errorf("cannot pull: there is no %s here", stateRef), "git fetch origin 'refs/heads/abl/*:refs/remotes/origin/abl/*' 'refs/abl/*:refs/abl/*' brings what was pushed")
	}
	if err != nil {
		return "", err
	}
	f, err := s.State()
	if err != nil {
		return "", err
	}
	fresh := len(f.Phases) == 0
	if !fresh {
		if f.Published == tip {
			return "nothing new: " + summary(f), nil
		}
		changed, err := s.wentOn(from, f, tip)
		if err != nil {
			return "", err
		}
		if changed && !theirs {
			return "", exit.With(exit.Person, fmt.Errorf("cannot take in %s: it is at %.12s, and this project went on from %q: %s", stateRef, tip, short(f.Published), summary(f)), "abl pull --theirs puts what is here aside, in .abl, and takes that in")
		}
		if changed {
			if text, err = s.putAside(); err != nil {
				return "", err
			}
		}
	}
	files, err := from.Kept(tip)
	if err == nil {
		f, err = s.restore(ctx, from, tip, files)
	}
	if err != nil {
		return "", fmt.Errorf("cannot take in %s: %w", stateRef, err)
	}
	return "restored: " + summary(f) + text, nil
}

// wentOn says whether the project is no longer what it published or pulled last, or that is
// no part of what is at tip.
func (s *Project) wentOn(from *git.Origin, f *state.File, tip string) (bool, error) {
	if has, err := from.Contains(tip, f.Published); err != nil || !has {
		return true, err
	}
	was, err := from.Kept(f.Published)
	if err != nil {
		return true, err
	}
	is, err := s.carried(f)
	return !maps.EqualFunc(was, is, bytes.Equal), err
}

// kinds are what a project holds of its phases, below .abl.
func (s *Project) kinds() []string {
	return []string{s.Paths.State(), s.Paths.Logs(), s.Paths.Reports(), s.Paths.Tests, s.Paths.Src}
}

// putAside moves what the project holds of its phases to a folder of its own in .abl.
func (s *Project) putAside() (string, error) {
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(s.Paths.Root, state.Dir, fmt.Sprintf("aside-%d", n))
		if err := os.Mkdir(to, 0o755); err == nil {
			break
		} else if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	for _, path := range s.kinds() {
		if err := os.Rename(path, filepath.Join(to, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "; what was here is in " + s.Paths.Rel(to), nil
}

// restore lays out what was published. state.json comes last: without it all is begun anew.
func (s *Project) restore(ctx context.Context, from *git.Origin, tip string, files map[string][]byte) (*state.File, error) {
	draft := s.Paths.State() + ".pulled"
	if err := hostfs.Write(draft, files[carriedState], 0o644); err != nil {
		return nil, err
	}
	f, err := state.Load(draft)
	if err != nil {
		return nil, err
	}
	fresh := state.New(s.Paths.Root)
	f.Root, f.Project, f.Published = fresh.Root, fresh.Project, tip
	for name, data := range files {
		to := ""
		switch kind, rest, _ := strings.Cut(name, "/"); kind {
		case carriedLedger:
			to = s.Paths.Ledger()
		case carriedIDs:
			if _, err := os.Lstat(filepath.Join(s.Paths.Specs(), spec.IDFile)); err == nil {
				continue // the person's own, which was committed with the specs
			}
			to = filepath.Join(s.Paths.Specs(), spec.IDFile)
		case carriedReports:
			to = filepath.Join(s.Paths.Reports(), rest)
		case carriedCalls:
			to = filepath.Join(s.Paths.Calls(), rest)
		default:
			continue
		}
		if err := hostfs.MkdirAll(s.Paths.Root, s.Paths.Rel(filepath.Dir(to))); err != nil {
			return nil, err
		}
		if err := hostfs.Write(to, data, 0o644); err != nil {
			return nil, err
		}
	}
	all := begun(f)
	if len(all) == 0 {
		return nil, errors.New("no phase in it has begun")
	}
	branch := Branch(all[len(all)-1])
	src, err := from.Tip(branch)
	if err == nil && src == "" {
		err = exit.With(exit.Person, fmt.Errorf("there is no branch %s", branch), "git fetch origin "+branch)
	}
	tests, terr := from.Ref(testsRef)
	if err = errors.Join(err, terr); err != nil {
		return nil, err
	}
	err = s.cloneTo(ctx, from, s.Paths.Src, src, branch, s.withheld(), f)
	if err == nil && tests != "" {
		err = s.cloneTo(ctx, from, s.Paths.Tests, tests, "main", nil, f)
	}
	if err == nil {
		err = errors.Join(state.Save(s.Paths.State(), f), os.Remove(draft))
	}
	return f, err
}

// cloneTo makes a workspace anew, with the tags of the phases that have passed.
func (s *Project) cloneTo(ctx context.Context, from *git.Origin, dir, commit, branch string, without []string, f *state.File) error {
	draft := dir + ".new"
	for _, path := range []string{draft, dir} {
		if err := hostfs.Remove(filepath.Dir(path), filepath.Base(path)); err != nil {
			return err
		}
	}
	if err := hostfs.MkdirAll(s.Paths.Root, s.Paths.Rel(draft)); err != nil {
		return err
	}
	if err := from.Clone(ctx, draft, commit, branch, without); err != nil {
		return err
	}
	repo, err := git.Open(draft, git.Options{Clone: true, Without: without})
	if err != nil {
		return err
	}
	for _, n := range begun(f) {
		p := f.Phase(n)
		at := p.SrcCommit
		if dir == s.Paths.Tests {
			at = p.TestsCommit
		}
		if has, err := repo.Contains(commit, at); err != nil {
			return err
		} else if has && p.Status == state.Passed {
			if err := repo.Tag(ctx, fmt.Sprintf("phase%d/passed", n), at); err != nil {
				return err
			}
		}
	}
	return os.Rename(draft, dir)
}

// Restored is a command that begins with the project as it was published, where this is a
// fresh clone of the person's repository.
func Restored(do func(context.Context, *Project) error) func(context.Context, *Project) error {
	return func(ctx context.Context, s *Project) error {
		if _, err := os.Lstat(s.Paths.State()); errors.Is(err, fs.ErrNotExist) {
			if err := s.restoreFresh(ctx); err != nil {
				return err
			}
		}
		return do(ctx, s)
	}
}

func (s *Project) restoreFresh(ctx context.Context) error {
	from, adopts, err := s.Origin()
	if err != nil || !adopts {
		return err
	}
	if tip, err := from.Ref(stateRef); err != nil || tip == "" {
		return err
	}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	text, err := s.Pull(ctx, false)
	if err == nil {
		s.In.Say("%s, from %s", text, stateRef)
	}
	return err
}
