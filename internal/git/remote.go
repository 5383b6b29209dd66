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

// fetchedRefs is where Fetch copies the remote's refs/abl/*.
const fetchedRefs = "refs/abl-remote/"

// Remote is a remote repository of the user's, such as origin. The user's git connects to it, with the
// user's credential helpers and ssh agent.
type Remote struct {
	origin *Origin
	name   string
	refs   map[string]string // commit by full name of the ref, at the last look or push
}

// Remote returns the remote with a name. It fails if the repository has no such remote.
func (o *Origin) Remote(name string) (*Remote, error) {
	if !o.conf.Section("remote").HasSubsection(name) {
		return nil, fmt.Errorf("cannot use the remote %q: %s has no remote of this name", name, o.dir)
	}
	return &Remote{origin: o, name: name}, nil
}

// Ref returns the commit that a ref of the remote named at the last look or push, "" for none.
func (r *Remote) Ref(name string) string { return r.refs[name] }

// Names returns the refs that the remote had at the last look or push, in order.
func (r *Remote) Names() []string { return slices.Sorted(maps.Keys(r.refs)) }

// Look asks the remote for its refs refs/abl/*, and for its branches that begin with a prefix.
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

// Fetch looks, and copies the refs refs/abl/* and the branches with their commits. No ref that the
// user or abl works with is moved.
func (r *Remote) Fetch(ctx context.Context, prefix string) error {
	if err := r.Look(ctx, prefix); err != nil || len(r.refs) == 0 {
		return err
	}
	args := []string{"-c", "gc.auto=0", "-c", "maintenance.auto=false", "fetch", "--quiet", "--no-tags",
		"--no-write-fetch-head", "--", r.name}
	copies := map[string]string{}
	for _, ref := range slices.Sorted(maps.Keys(r.refs)) {
		copies[ref] = strings.Replace(ref, "refs/abl/", fetchedRefs, 1)
		if name, is := strings.CutPrefix(ref, "refs/heads/"); is {
			copies[ref] = "refs/remotes/" + r.name + "/" + name
		}
		args = append(args, "+"+ref+":"+copies[ref])
	}
	_, err := r.run(ctx, args...)
	for ref, at := range copies { // the remote's may have moved between both commands
		if err == nil {
			r.refs[ref], err = r.origin.Ref(at)
		}
	}
	return err
}

// Push sets refs of the remote to the commits that they name here, all or none. It fails with ErrBehind
// if one of them has moved since the last look or push, or names a commit that the new one does not have.
func (r *Remote) Push(ctx context.Context, refs ...string) error {
	args, set := []string{"push", "--quiet", "--atomic", "--no-verify"}, map[string]string{}
	var specs []string
	for _, ref := range refs {
		is, err := r.origin.Ref(ref)
		was := r.refs[ref]
		if err != nil || is == "" || is == was {
			if err != nil {
				return err
			}
			continue
		}
		if was != "" {
			if has, err := r.origin.Contains(is, was); err != nil || !has {
				return errors.Join(err, fmt.Errorf("%w: %s of %s names %.12s, which %.12s does not have", ErrBehind, ref, r.name,
					was, is))
			}
		}
		set[ref] = is
		args, specs = append(args, "--force-with-lease="+ref+":"+was), append(specs, is+":"+ref)
	}
	if len(set) == 0 {
		return nil
	}
	_, err := r.run(ctx, append(append(args, "--", r.name), specs...)...)
	if err != nil {
		return r.refused(ctx, set, err)
	}
	maps.Copy(r.refs, set)
	return nil
}

// refused returns nil if a push that failed has set its refs, an ErrBehind if one of them moved, and
// the error of the push otherwise.
func (r *Remote) refused(ctx context.Context, set map[string]string, failed error) error {
	now := &Remote{origin: r.origin, name: r.name}
	if err := now.Look(ctx, ""); err != nil {
		return failed
	}
	done := 0
	for ref, want := range set {
		switch is := now.refs[ref]; {
		case is == want:
			done++
		case is != r.refs[ref]:
			return fmt.Errorf("%w: %s of %s moved from %.12q to %.12q", ErrBehind, ref, r.name, r.refs[ref], is)
		}
	}
	if done < len(set) {
		return failed
	}
	maps.Copy(r.refs, set) // only the reply was lost
	return nil
}

// remoteTime is how long one exchange with a remote may take.
const remoteTime = 2 * time.Minute

// run runs the user's git, which connects to the remote.
func (r *Remote) run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, remoteTime)
	defer cancel()
	out, err := output(proc.GitRemote(ctx, r.origin.dir, args...))
	if err != nil {
		err = fmt.Errorf("%w %q: %w", ErrRemote, r.name, err)
	}
	return string(out), err
}

// ErrRemote marks a remote that git cannot reach, or that refuses a push.
var ErrRemote = errors.New("cannot exchange commits with the remote")
