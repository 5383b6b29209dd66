package phase

import (
	"bytes"
	"cmp"
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

// exchange is what goes between a project and the person's repository that it works on.
type exchange struct {
	*Project
	repo *git.Origin
	file *state.File
	tip  string // what stateRef names, "" for nothing
}

func (s *Project) exchange() (x exchange, err error) {
	x.Project = s
	var adopts bool
	if x.repo, adopts, err = s.Origin(); err != nil {
		return x, err
	}
	if !adopts {
		hint := fmt.Sprintf("source.repo in .abl/config.yaml names one; git -C %s push brings the source elsewhere", s.Paths.Rel(s.Paths.Src))
		return x, exit.With(exit.Usage, errors.New("this project works on no repository of yours: its source has a history of its own"), hint)
	}
	if x.tip, err = x.repo.Ref(stateRef); err == nil {
		x.file, err = s.State()
	}
	return x, err
}

// Publish brings the branches of the phases that have begun, or that of phase n, and the tests
// and the state into the person's repository. A ref moves forward, or it is left.
func (s *Project) Publish(ctx context.Context, n int) (all []Published, err error) {
	x, err := s.exchange()
	if err != nil {
		return nil, err
	}
	phases := slices.DeleteFunc(begun(x.file), func(k int) bool { return n != 0 && k != n })
	if len(phases) == 0 {
		err = errors.New("cannot publish: no phase has begun yet, or not this one")
		return nil, exit.With(exit.Usage, err, "abl status lists the phases")
	}
	if known := x.file.Published; x.tip != "" && x.tip != known {
		mine, err := x.standsAt(x.tip)
		if err == nil && !mine { // else an abl was killed that has published it
			err = fmt.Errorf("cannot publish: %s is at %.12s, and this project knows %.12q: %w", stateRef, x.tip, known, git.ErrBehind)
		}
		if err != nil {
			return nil, err
		}
	}
	src, err1 := git.Open(s.Paths.Src, s.source())
	tests, err2 := git.Open(s.Paths.Tests, git.Options{})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	bring := func(from *git.Repo, ref, commit string) {
		if err == nil && commit != "" {
			if err = x.repo.Receive(ctx, from, ref, commit); err == nil {
				all = append(all, Published{ref, commit})
			}
		}
	}
	for _, k := range phases {
		ref := "refs/heads/" + Branch(k)
		tip, rerr := src.Ref(ref)
		err = cmp.Or(err, rerr)
		bring(src, ref, tip)
	}
	at, _, terr := tests.Head()
	err = cmp.Or(err, terr)
	if bring(tests, testsRef, at.Hash); err == nil {
		err = x.keep(ctx)
	}
	if err != nil {
		return all, fmt.Errorf("cannot publish: %w", err)
	}
	return append(all, Published{stateRef, x.file.Published}), nil
}

// keep brings the state.
func (x exchange) keep(ctx context.Context) error {
	files, err := x.carried()
	if err == nil {
		x.file.Published, err = x.repo.Keep(ctx, stateRef, x.tip, summary(x.file), files)
	}
	if err != nil {
		return err
	}
	return errors.Join(hostfs.HandOver(filepath.Join(x.Paths.Root, x.Conf.Source.Repo), ".git"), state.Save(x.Paths.State(), x.file))
}

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
func (x exchange) carried() (map[string][]byte, error) {
	s, f := x.Project, x.file
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
	x, err := s.exchange()
	if err == nil && x.tip == "" {
		err = exit.With(exit.Usage, fmt.Errorf("cannot pull: there is no %s here", stateRef), "git fetch origin 'refs/heads/abl/*:refs/remotes/origin/abl/*' 'refs/abl/*:refs/abl/*' brings what was pushed")
	}
	if err != nil {
		return "", err
	}
	if len(x.file.Phases) > 0 {
		if x.file.Published == x.tip {
			return "nothing new: " + summary(x.file), nil
		}
		changed, err := x.wentOn(ctx)
		if err == nil && changed && !theirs {
			what := fmt.Errorf("cannot take in %s: it is at %.12s, and this project went on from %.12q: %s", stateRef, x.tip, x.file.Published, summary(x.file))
			err = exit.With(exit.Person, what, "abl pull --theirs puts what is here aside, in .abl, and takes that in")
		}
		if err == nil && changed {
			text, err = x.putAside()
		}
		if err != nil {
			return "", err
		}
	}
	if err := x.restore(ctx); err != nil {
		return "", fmt.Errorf("cannot take in %s: %w", stateRef, err)
	}
	return "restored: " + summary(x.file) + text, nil
}

// wentOn says whether the project is no longer what it published or pulled last, or that is
// no part of what is at tip.
func (x exchange) wentOn(ctx context.Context) (bool, error) {
	if has, err := x.repo.Contains(x.tip, x.file.Published); err != nil || !has {
		return true, err
	}
	same, err := x.standsAt(x.file.Published)
	for dir, o := range map[string]git.Options{x.Paths.Src: x.source(), x.Paths.Tests: {}} {
		if _, gone := os.Lstat(filepath.Join(dir, ".git")); err != nil || !same || gone != nil {
			continue
		}
		repo, err := git.Open(dir, o)
		if err != nil {
			return true, err
		}
		at, made, err1 := repo.Head()
		differ, err2 := repo.Differs(ctx, "")
		if err := errors.Join(err1, err2); err != nil {
			return true, err
		}
		same = (!made || x.repo.Holds(at.Hash, ".")) && (!o.Clone || len(differ) == 0) // else a person made more by hand
	}
	return !same, err
}

// standsAt says whether the project is what was published as a commit.
func (x exchange) standsAt(commit string) (bool, error) {
	was, err1 := x.repo.Kept(commit)
	is, err2 := x.carried()
	return maps.EqualFunc(was, is, bytes.Equal), errors.Join(err1, err2)
}

// putAside moves what the project holds of its phases to a folder of its own in .abl.
func (x exchange) putAside() (string, error) {
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(x.Paths.Root, state.Dir, fmt.Sprintf("aside-%d", n))
		if err := os.Mkdir(to, 0o755); err == nil {
			break
		} else if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	for _, path := range []string{x.Paths.State(), x.Paths.Logs(), x.Paths.Reports(), x.Paths.Tests, x.Paths.Src} {
		if err := os.Rename(path, filepath.Join(to, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "; what was here is in " + x.Paths.Rel(to), nil
}

// restore lays out what was published. state.json comes last: without it all is begun anew.
func (x *exchange) restore(ctx context.Context) error {
	files, err := x.repo.Kept(x.tip)
	if err != nil {
		return err
	}
	draft := x.Paths.State() + ".pulled"
	if err := hostfs.Write(draft, files[carriedState], 0o644); err != nil {
		return err
	}
	f, err := state.Load(draft)
	if err != nil {
		return err
	}
	fresh := state.New(x.Paths.Root)
	f.Root, f.Project, f.Published, f.Lease, f.Git, x.file = fresh.Root, fresh.Project, x.tip, nil, nil, f
	for name, data := range files {
		if to := x.placeOf(name); to != "" {
			if err := x.lay(to, data); err != nil {
				return err
			}
		}
	}
	all := begun(f)
	if len(all) == 0 {
		return errors.New("no phase in it has begun")
	}
	branch := Branch(all[len(all)-1])
	src, err := x.repo.Tip(branch)
	if fetched, ferr := x.repo.Ref("refs/remotes/origin/" + branch); ferr == nil && fetched != "" {
		if newer, cerr := x.repo.Contains(fetched, src); cerr == nil && newer {
			src = fetched
		}
	}
	if err == nil && src == "" {
		err = exit.With(exit.Person, fmt.Errorf("there is no branch %s", branch), "git fetch origin "+branch)
	}
	tests, terr := x.repo.Ref(testsRef)
	if err = errors.Join(err, terr); err == nil {
		err = x.cloneTo(ctx, x.Paths.Src, src, branch, withheld(x.Project))
	}
	if err == nil {
		err = x.cloneTo(ctx, x.Paths.Tests, tests, "main", nil)
	}
	if err == nil {
		err = errors.Join(state.Save(x.Paths.State(), f), os.Remove(draft))
	}
	return err
}

// lay writes a carried file. A link on the way would be the repository's and lead anywhere.
func (x *exchange) lay(to string, data []byte) error {
	for at := filepath.Dir(to); at != x.Paths.Root; at = filepath.Dir(at) {
		if is, err := os.Lstat(at); err == nil && !is.IsDir() {
			return exit.With(exit.Person, fmt.Errorf("%q is a link or a file, and no folder", x.Paths.Rel(at)), "move it away")
		}
	}
	return errors.Join(hostfs.MkdirAll(x.Paths.Root, x.Paths.Rel(filepath.Dir(to))), hostfs.Write(to, data, 0o644))
}

// placeOf is where a carried file belongs, "" for nowhere.
func (x *exchange) placeOf(name string) string {
	kind, rest, _ := strings.Cut(name, "/")
	report, _ := path.Match("phase*/*", rest)
	finding, _ := path.Match("p*/"+roles.FindingFile, rest)
	switch {
	case name == carriedLedger:
		return x.Paths.Ledger()
	case kind == carriedReports && report:
		return filepath.Join(x.Paths.Reports(), rest)
	case kind == carriedCalls && finding:
		return filepath.Join(x.Paths.Calls(), rest)
	case name == carriedIDs:
		ids := filepath.Join(x.Paths.Specs(), spec.IDFile)
		if _, err := os.Lstat(ids); err != nil { // else it is the person's, committed with the specs
			return ids
		}
	}
	return ""
}

// cloneTo makes a workspace anew, with the tags of the phases that have passed. Without a commit,
// as where no Verifier had ended, its history is empty.
func (x *exchange) cloneTo(ctx context.Context, dir, commit, branch string, without []string) error {
	draft, err := emptied(x.Paths, dir+".new")
	if err == nil && commit != "" {
		err = x.repo.Clone(ctx, draft, commit, branch, without)
	}
	if err != nil {
		return err
	}
	repo, err := git.Open(draft, git.Options{Clone: commit != "", Without: without})
	if err != nil {
		return err
	}
	for _, n := range begun(x.file) {
		p := x.file.Phase(n)
		at := p.SrcCommit
		if dir == x.Paths.Tests {
			at = p.TestsCommit
		}
		if p.Status != state.Passed {
			continue
		}
		has, err := repo.Contains(commit, at)
		if err == nil && has {
			err = repo.Tag(ctx, fmt.Sprintf("phase%d/passed", n), at)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(hostfs.Remove(filepath.Dir(dir), filepath.Base(dir)), os.Rename(draft, dir))
}

// emptied makes a folder anew.
func emptied(p state.Project, dir string) (string, error) {
	return dir, errors.Join(hostfs.Remove(filepath.Dir(dir), filepath.Base(dir)), hostfs.MkdirAll(p.Root, p.Rel(dir)))
}

// Restored is a command that begins with the project as it was published, where this is a
// fresh clone of the person's repository.
func Restored(do func(context.Context, *Project) error) func(context.Context, *Project) error {
	return func(ctx context.Context, s *Project) error {
		if _, err := os.Lstat(s.Paths.State()); errors.Is(err, fs.ErrNotExist) {
			if err := restoreFresh(ctx, s); err != nil {
				return err
			}
		}
		return do(ctx, s)
	}
}

func restoreFresh(ctx context.Context, s *Project) error {
	if s.Conf.Source.Repo == "" {
		return nil
	}
	if s.Conf.Source.Repo != "." && s.Trusted(ctx) != nil { // it is not the user who says which one
		return nil
	}
	if x, err := s.exchange(); err != nil || x.tip == "" {
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
