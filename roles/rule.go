package roles

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/sandbox"
	"abl/internal/state"
)

// rule describes what a container may have. It does not use the code that describes containers
// (Mounts, boxFor, Boxes.Reach), so that an error there is detected before the start, and again
// from inside.
type rule struct {
	id       string          // of the project on the engine
	mounts   []sandbox.Mount // all of them
	holder   string          // place whose network is joined, "" for no network
	networks []string        // that this network may be on
	absent   []string        // paths that must not exist
}

// ofRole returns the rule for a call of a role, whose record is dir.
func ofRole(r Role, p state.Project, id, dir string, proxied bool) rule {
	rules := rule{id: id, absent: unseen(r, p)}
	switch {
	case r.Alone:
		source := sandbox.Mount{What: sandbox.Workspace, Source: p.Src, Target: "/workspace/src", ReadOnly: r.Sealed}
		rules.mounts = append(callMounts(dir), source)
		rules.holder, rules.networks = "builder", []string{"builder"}
	case r.App:
		rules.mounts = append(callMounts(dir), workspaceMounts(p, p.Tests, "/workspace/tests")...)
		if rules.holder, rules.networks = "verifier", []string{"verifier"}; !proxied {
			rules.networks = append(rules.networks, "app")
		}
	default:
		rules.mounts = append(callMounts(dir), workspaceMounts(p, p.Src, "/workspace/src")...)
		rules.holder, rules.networks = "builder", []string{"builder", "trial"}
	}
	return rules
}

// ofApp returns the rule for the app at a place, whose record is dir. The app sees a view of the
// source, or a copy.
func ofApp(p state.Project, id, dir, holder string, copied bool) rule {
	tree := BoxName(id, holder+"-tree")
	if copied {
		tree = BoxName(id, holder+"-scratch")
	}
	return rule{
		id:       id,
		holder:   holder,
		networks: []string{"app"},
		absent:   append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")),
		mounts: []sandbox.Mount{
			{What: sandbox.Tree, Source: tree, Target: "/workspace/src"},
			{What: sandbox.Empty, Source: filepath.Join(p.Root, ".abl/logs/calls/.empty"), Target: "/workspace/src/.git",
				ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: "/abl/out/events"},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: "/abl/out/app.log"},
		},
	}
}

// ofReplay returns the rule for the tests of a commit, in a volume named after the replay. Without
// a proxy the tests are on the app's network.
func ofReplay(p state.Project, id, dir, name, holder string, proxied bool) rule {
	rules := rule{
		id: id, holder: holder, absent: unseen(Verifier, p),
		mounts: append(callMounts(dir), scratch(id, name)),
	}
	if !proxied {
		rules.networks = []string{"app", "verifier"}
	}
	return rules
}

// ofBuild returns the rule for a build of code-commit, in a volume named after the build.
func ofBuild(id, dir, name string, absent []string, gated bool) rule {
	rules := rule{id: id, absent: absent, mounts: append(callMounts(dir), scratch(id, name))}
	if gated {
		rules.holder, rules.networks = "builder", []string{"builder"}
	}
	return rules
}

// ofPreparation returns the rule for app.prepare, which runs in the Builder's workspace or in an
// export without .git.
func ofPreparation(p state.Project, id, dir string, gated, exported bool) rule {
	rules := ofBuild(id, dir, "", append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")),
		gated)
	source := workspaceMounts(p, p.Src, "/workspace/src")[:2]
	if exported {
		source = source[:1]
	}
	rules.mounts = append(callMounts(dir), source...)
	if gated {
		rules.networks = []string{"builder", "trial"} // the Builder's, which no call uses at that time
	}
	return rules
}

// scratch returns the volume of a replay or a build.
func scratch(id, name string) sandbox.Mount {
	return sandbox.Mount{What: sandbox.Scratch, Source: BoxName(id, name), Target: "/workspace"}
}

// callMounts returns the mounts of a call's own record.
func callMounts(dir string) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "stdout"), Target: "/abl/out/stdout"},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "stderr"), Target: "/abl/out/stderr"},
	}
}

// workspaceMounts returns the mounts of a role's workspace, its .git and the specs.
func workspaceMounts(p state.Project, dir, target string) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.Workspace, Source: dir, Target: target},
		{What: sandbox.GitDir, Source: filepath.Join(dir, ".git"), Target: target + "/.git", ReadOnly: true},
		{What: sandbox.Specs, Source: filepath.Join(p.Root, ".abl/specs"), Target: "/workspace/specs", ReadOnly: true},
	}
}

// expected returns the description of a container that has what the rule allows. The engine must
// report this one, whatever the container was created from.
func (r rule) expected(box sandbox.Box) sandbox.Box {
	box.Mounts = r.mounts
	box.Loose, box.Seals, box.Below = false, false, false // a service, a holder, and what ends with a holder
	return box
}

// check compares the parts of a container's description that the rule only bounds.
func (r rule) check(box sandbox.Box) sandbox.Proof {
	uid, gid, both := strings.Cut(box.User, ":")
	root := strings.Trim(uid, "0") == "" || strings.Trim(gid, "0") == "" || !both
	return sandbox.Proof{
		sandbox.Same("rule of memory mounts", "/home/agent /tmp", tmpfsText(box.Tmpfs)),
		r.reach(box.Reach),
		sandbox.Same("rule of root", "false", fmt.Sprint(root)),
		sandbox.Same("rule of limits", "", unlimited(box.Limits)),
	}
}

// tmpfsText lists the targets of memory mounts, and marks those without a size limit.
func tmpfsText(mounts []sandbox.Tmpfs) string {
	var all []string
	for _, t := range mounts {
		if t.Size <= 0 {
			t.Target += " without a limit"
		}
		all = append(all, t.Target)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// hasNoNetwork returns true for a container without any network.
func hasNoNetwork(box sandbox.Box) bool { return box.Reach.Join == "" && len(box.Reach.Endpoints) == 0 }

// networkNames returns the engine's names of the networks that a container may be on.
func (r rule) networkNames() (all []string) {
	for _, place := range r.networks {
		all = append(all, BoxName(r.id, "net-"+place))
	}
	return all
}

// reach checks which network a container joins.
func (r rule) reach(got sandbox.Reach) sandbox.Check {
	check := sandbox.Check{Name: "rule of networks", Want: "none"}
	if r.holder != "" {
		check.Want = fmt.Sprintf("that of %s, on %s", r.holder, cmp.Or(strings.Join(r.networks, ", "), "none"))
	}
	allowed := r.networkNames()
	var on []string
	check.OK = len(got.Endpoints) == 0 && !got.Resolve && !got.Host
	for _, end := range append(slices.Clone(got.Endpoints), got.Through...) {
		on = append(on, end.Network)
		check.OK = check.OK && slices.Contains(allowed, end.Network)
	}
	switch {
	case got.Join == "" && len(on) == 0: // no network is always allowed
	case r.holder == "" || got.Join != BoxName(r.id, "holder-"+r.holder) || got.Through == nil:
		check.OK = false
	}
	check.Got = fmt.Sprintf("that of %q, on %s", got.Join, cmp.Or(strings.Join(on, ", "), "none"))
	return check
}

// unlimited names the missing limits of a container.
func unlimited(l sandbox.Limits) string {
	limits := map[string]bool{
		"memory":     l.Memory > 0,
		"cpus":       l.CPUs > 0,
		"processes":  l.Pids > 0,
		"file size":  l.FileSize > 0,
		"open files": l.OpenFile > 0,
	}
	maps.DeleteFunc(limits, func(_ string, limited bool) bool { return limited })
	return strings.Join(slices.Sorted(maps.Keys(limits)), ", ")
}

// ErrSource means that a path of this machine is not the file or directory that abl created for a
// container. An engine follows links as root.
var ErrSource = errors.New("cannot show this to a container")

// checkSources checks the sources of mounts right before a container is created. They must be real
// directories below the project, without a link in their path, and none inside of another. The
// files for output must be regular files.
func checkSources(p state.Project, mounts []sandbox.Mount) error {
	if err := checkSeparate(p); err != nil {
		return err
	}
	for _, m := range mounts {
		if m.What.IsVolume() {
			continue // the engine's own storage
		}
		steps, err := statPath(p, m.Source)
		if err != nil {
			return err
		}
		switch is := steps[len(steps)-1]; {
		case m.What == sandbox.CallOut && !is.Mode().IsRegular():
			return sourceError(p, m.Source, "it is not a plain file")
		case m.What != sandbox.CallOut && !is.IsDir():
			return sourceError(p, m.Source, "it is not a directory")
		case forbidden(p, is):
			return sourceError(p, m.Source, "it is the project itself, or the home or root directory, under another name")
		}
	}
	return nil
}

// forbidden returns true for a directory that no container may see.
func forbidden(p state.Project, is fs.FileInfo) bool {
	home, _ := os.UserHomeDir() // "" is ignored below
	return slices.ContainsFunc([]string{p.Root, filepath.Dir(p.State()), home, "/"}, func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(is, other)
	})
}

// statPath returns the file infos of each directory from the project's root to path, the root
// first. It fails if one of them is a link.
func statPath(p state.Project, path string) ([]fs.FileInfo, error) {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil, sourceError(p, path, "it is not below the project")
	}
	var steps []fs.FileInfo
	at := p.Root
	for _, step := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = filepath.Join(at, step)
		is, err := os.Lstat(at)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		if is.Mode()&fs.ModeSymlink != 0 {
			return nil, sourceError(p, path, fmt.Sprintf("%q is a link; put the real directory there", p.Rel(at)))
		}
		steps = append(steps, is)
	}
	return steps, nil
}

// checkSeparate fails if one of the workspaces, the specs and the records is or contains another,
// also under another name, such as through a bind mount.
func checkSeparate(p state.Project) error {
	places := []string{p.Src, p.Tests, p.Specs(), p.Calls()}
	for i, inner := range places {
		steps, err := statPath(p, inner)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a missing path fails at its mount
			return err
		}
		for k, outer := range places {
			end, err := os.Lstat(outer)
			same := func(step fs.FileInfo) bool { return os.SameFile(step, end) }
			if err == nil && i != k && slices.ContainsFunc(steps, same) {
				return sourceError(p, inner, fmt.Sprintf("it is, or is inside of, %q", p.Rel(outer)))
			}
		}
	}
	return nil
}

func sourceError(p state.Project, path, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrSource, p.Rel(path), why)
}
