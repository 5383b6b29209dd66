package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"abl/internal/proc"
)

// fetchedRefs is the prefix of the copies of the remote's refs/abl/*.
const fetchedRefs = "refs/abl-remote/"

// Remote is a remote of the user's repository, such as origin. The user's git connects to it with
// the user's credential helpers and ssh agent.
type Remote struct {
	origin *Origin
	name   string
	refs   map[string]string // full ref name to commit, as of the last Look or Push
}

// Remote returns the remote with a name. It fails if the repository has no such remote.
func (o *Origin) Remote(name string) (*Remote, error) {
	if !o.conf.Section("remote").HasSubsection(name) {
		return nil, fmt.Errorf("cannot use the remote %q: %q has no such remote", name, o.dir)
	}
	return &Remote{origin: o, name: name}, nil
}

// FetchRef makes the empty directory dir a repository with a ref of the repository at an address, without the
// history of its commit. If there is no such ref, the new repository has none either.
func FetchRef(ctx context.Context, dir, address, ref string) (*Origin, error) {
	r := &Remote{origin: &Origin{repository: repository{dir: dir}}, name: address}
	found, err := r.run(ctx, "ls-remote", "--", address, ref)
	if err == nil {
		_, err = r.run(ctx, "init", "--quiet")
	}
	if err == nil && found != "" {
		_, err = r.run(ctx, "fetch", "--quiet", "--depth=1", "--no-tags", "--", address, ref+":"+ref)
	}
	if err != nil {
		return nil, err
	}
	return OpenOrigin(dir)
}

// Ref returns the commit of a ref of the remote as of the last Look or Push, "" if there was no
// such ref.
func (r *Remote) Ref(name string) string { return r.refs[name] }

// Names returns the sorted refs of the remote as of the last Look or Push.
func (r *Remote) Names() []string { return slices.Sorted(maps.Keys(r.refs)) }

// Look reads the refs refs/abl/* of the remote, and its branches with a prefix.
func (r *Remote) Look(ctx context.Context, prefix string) error {
	out, err := r.run(ctx, "ls-remote", "--refs", "--", r.name, "refs/abl/*", "refs/heads/"+prefix+"*")
	if err != nil {
		return err
	}
	r.refs = map[string]string{}
	for line := range strings.Lines(out) {
		if hash, ref, is := strings.Cut(strings.TrimSpace(line), "\t"); is {
			r.refs[ref] = hash
		}
	}
	return nil
}

// Fetch reads the refs like Look and copies them with their commits. It moves no ref that the user
// or abl works with.
func (r *Remote) Fetch(ctx context.Context, prefix string) error {
	if err := r.Look(ctx, prefix); err != nil || len(r.refs) == 0 {
		return err
	}
	branches := "refs/remotes/" + r.name + "/"
	_, err := r.run(ctx, "-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--", r.name, "+refs/abl/*:"+fetchedRefs+"*",
		"+refs/heads/"+prefix+"*:"+branches+prefix+"*")
	for _, ref := range r.Names() { // they may have moved between the two commands
		copied := strings.Replace(ref, "refs/abl/", fetchedRefs, 1)
		if name, is := strings.CutPrefix(ref, "refs/heads/"); is {
			copied = branches + name
		}
		if err == nil {
			r.refs[ref], err = r.origin.Ref(copied)
		}
	}
	return err
}

// Push sets refs of the remote to the commits that they name here, all or none. It fails with ErrBehind
// if one of them has moved since the last look or push, or names a commit that the new one does not have.
// An earlier push whose reply was lost is no such move. Ref then returns the commits that it found.
func (r *Remote) Push(ctx context.Context, refs ...string) error {
	args, set := []string{"push", "--quiet", "--atomic", "--no-verify"}, map[string]string{}
	var specs []string
	for _, ref := range refs {
		is, err := r.origin.Ref(ref)
		was := r.refs[ref]
		if err == nil && is != "" && is != was && was != "" {
			err = r.follows(ref, is, was)
		}
		if err != nil {
			return err
		}
		if is != "" && is != was {
			set[ref] = is
			args, specs = append(args, "--force-with-lease="+ref+":"+was), append(specs, is+":"+ref)
		}
	}
	if len(set) == 0 {
		return nil
	}
	_, err := r.run(ctx, append(append(args, "--", r.name), specs...)...)
	if err == nil {
		maps.Copy(r.refs, set)
		return nil
	}
	now := &Remote{origin: r.origin, name: r.name}
	if lerr := now.Look(ctx, ""); lerr != nil {
		return err
	}
	moved, behind := false, error(nil)
	for ref, is := range set {
		if there := now.refs[ref]; there != r.refs[ref] {
			moved, behind = true, errors.Join(behind, r.follows(ref, is, there))
			r.refs[ref] = there
		}
	}
	switch {
	case behind != nil:
		return behind
	case moved: // the reply of an earlier push was lost
		return r.Push(ctx, refs...)
	}
	return err
}

// follows fails with ErrBehind if a commit does not have the one that a ref of the remote names.
func (r *Remote) follows(ref, is, was string) error {
	has, err := r.origin.Contains(is, was)
	if err == nil && !has {
		err = fmt.Errorf("%w: %s of %s names %.12q, which %.12s does not have", ErrBehind, ref, r.name, was, is)
	}
	return err
}

// remoteTime is the maximum time of one command for a remote.
const remoteTime = 2 * time.Minute

// run runs a command of the user's git that connects to the remote.
func (r *Remote) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTime)
	defer cancel()
	out, err := output(proc.GitRemote(ctx, r.origin.dir, args...))
	if err != nil {
		err = fmt.Errorf("%w %q: %w", ErrRemote, r.name, err)
	}
	return string(out), err
}

// ErrRemote means that git cannot reach a remote, or that the remote rejects a push.
var ErrRemote = errors.New("cannot exchange commits with the remote")
