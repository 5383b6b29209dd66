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

// rule says what a box may be, whatever was intended. It is written out here and
// takes nothing from what puts boxes together (Mounts, boxFor, Site.Reach), so that a
// slip there is refused before the start, and found again from inside.
type rule struct {
	id       string          // of the project on the engine
	mounts   []sandbox.Mount // all of them
	holder   string          // place whose network is joined, "" for none
	networks []string        // that this network may be on
	absent   []string        // paths where nothing is
}

// ofRole is the rule for a call of a role, whose record is dir.
func ofRole(r Role, p state.Project, id, dir string, door bool) rule {
	rules := rule{id: id, absent: unseen(r, p)}
	switch {
	case r.Alone:
		rules.mounts = append(calls(dir), sandbox.Mount{What: sandbox.Workspace, Source: p.Src, Target: "/workspace/src", ReadOnly: r.Sealed})
		rules.holder, rules.networks = "builder", []string{"builder"}
	case r.App:
		rules.mounts = append(calls(dir), workspace(p, p.Tests, "/workspace/tests")...)
		if rules.holder, rules.networks = "verifier", []string{"verifier"}; !door {
			rules.networks = append(rules.networks, "app")
		}
	default:
		rules.mounts = append(calls(dir), workspace(p, p.Src, "/workspace/src")...)
		rules.holder, rules.networks = "builder", []string{"builder", "trial"}
	}
	return rules
}

// ofApp is the rule for the app at a place, whose record is dir. It sees a view of the source, or
// a copy.
func ofApp(p state.Project, id, dir, holder string, copied bool) rule {
	tree := BoxName(id, holder+"-tree")
	if copied {
		tree = BoxName(id, holder+"-scratch")
	}
	return rule{
		id: id, holder: holder, networks: []string{"app"},
		absent: append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")),
		mounts: []sandbox.Mount{
			{What: sandbox.Tree, Source: tree, Target: "/workspace/src"},
			{What: sandbox.Empty, Source: filepath.Join(p.Root, ".abl/logs/calls/.empty"), Target: "/workspace/src/.git", ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: "/abl/out/events"},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: "/abl/out/app.log"},
		},
	}
}

// ofReplay is the rule for the tests of a commit, in a volume of the replay's name. Where the app
// has no door they are on its network.
func ofReplay(p state.Project, id, dir, name, holder string, door bool) rule {
	rules := rule{
		id: id, holder: holder, absent: unseen(Verifier, p),
		mounts: append(calls(dir), scratch(id, name)),
	}
	if !door {
		rules.networks = []string{"app", "verifier"}
	}
	return rules
}

// ofBuild is the rule for a build of code-commit, in a volume of the build's name.
func ofBuild(id, dir, name string, absent []string, gated bool) rule {
	rules := rule{id: id, absent: absent, mounts: append(calls(dir), scratch(id, name))}
	if gated {
		rules.holder, rules.networks = "builder", []string{"builder"}
	}
	return rules
}

// ofPreparation is the rule for app.prepare, which runs in the Builder's workspace or in an export
// without a history.
func ofPreparation(p state.Project, id, dir string, gated, exported bool) rule {
	rules := ofBuild(id, dir, "", append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")), gated)
	source := workspace(p, p.Src, "/workspace/src")[:2]
	if exported {
		source = source[:1]
	}
	rules.mounts = append(calls(dir), source...)
	if gated {
		rules.networks = []string{"builder", "trial"} // a Builder's, in which nobody else is meanwhile
	}
	return rules
}

// scratch is the volume of a replay or a build.
func scratch(id, name string) sandbox.Mount {
	return sandbox.Mount{What: sandbox.Scratch, Source: BoxName(id, name), Target: "/workspace"}
}

// calls are what every call has of its own record.
func calls(dir string) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "stdout"), Target: "/abl/out/stdout"},
		{What: sandbox.CallOut, Source: filepath.Join(dir, "stderr"), Target: "/abl/out/stderr"},
	}
}

// workspace is a role's own directory, its history and the specs.
func workspace(p state.Project, dir, target string) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.Workspace, Source: dir, Target: target},
		{What: sandbox.GitDir, Source: filepath.Join(dir, ".git"), Target: target + "/.git", ReadOnly: true},
		{What: sandbox.Specs, Source: filepath.Join(p.Root, ".abl/specs"), Target: "/workspace/specs", ReadOnly: true},
	}
}

// check holds an intent to the rule.
func (r rule) check(box sandbox.Box) sandbox.Proof {
	return sandbox.Proof{
		sandbox.Same("rule of mounts", words(r.mounts), words(box.Mounts)),
		sandbox.Same("rule of memory mounts", "/home/agent /tmp", bounded(box.Tmpfs)),
		r.reach(box.Reach),
		sandbox.Same("rule of users", "", privileged(box)),
		sandbox.Same("rule of limits", "", unlimited(box.Limits)),
	}
}

// words are mounts in words, sorted. A volume has its name and what it is for.
func words(mounts []sandbox.Mount) string {
	var all []string
	for _, m := range mounts {
		source, way := m.Source, "read and write"
		if m.What.IsVolume() {
			source = fmt.Sprintf("the %s volume %s", m.What, source)
		}
		if m.ReadOnly {
			way = "read-only"
		}
		all = append(all, fmt.Sprintf("%s is %s, %s", m.Target, source, way))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// bounded are the targets of memory mounts; one without a bound is named as that.
func bounded(mounts []sandbox.Tmpfs) string {
	var all []string
	for _, t := range mounts {
		if t.Size <= 0 {
			t.Target += " without a bound"
		}
		all = append(all, t.Target)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// cutOff says that a box has no network at all, by the engine's record: there is
// nothing to try from inside.
func cutOff(box sandbox.Box) bool { return box.Reach.Join == "" && len(box.Reach.Endpoints) == 0 }

// reaches names the networks that a box may be on, as the engine knows them.
func (r rule) reaches() (all []string) {
	for _, place := range r.networks {
		all = append(all, BoxName(r.id, "net-"+place))
	}
	return all
}

// reach checks whose network is joined, and what that is on.
func (r rule) reach(got sandbox.Reach) sandbox.Check {
	check := sandbox.Check{Name: "rule of networks", Want: "none"}
	if r.holder != "" {
		check.Want = fmt.Sprintf("that of %s, on %s", r.holder, cmp.Or(strings.Join(r.networks, ", "), "none"))
	}
	allowed := r.reaches()
	var on []string
	check.OK = len(got.Endpoints) == 0 && !got.Resolve
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

// privileged says in what a box is more than an ordinary user's.
func privileged(box sandbox.Box) string {
	uid, gid, both := strings.Cut(box.User, ":")
	return thoseThat(map[string]bool{
		"root":      strings.Trim(uid, "0") == "" || strings.Trim(gid, "0") == "" || !both,
		"a service": box.Loose, "a holder": box.Seals, "among the processes of another": box.Below,
	})
}

// unlimited names what a box may have without end.
func unlimited(l sandbox.Limits) string {
	return thoseThat(map[string]bool{
		"memory without a limit": l.Memory <= 0, "cpus without a limit": l.CPUs <= 0, "processes without a limit": l.Pids <= 0,
		"file size without a limit": l.FileSize <= 0, "open files without a limit": l.OpenFile <= 0,
	})
}

// thoseThat names what is.
func thoseThat(are map[string]bool) string {
	maps.DeleteFunc(are, func(_ string, is bool) bool { return !is })
	return strings.Join(slices.Sorted(maps.Keys(are)), ", ")
}

// ErrSource means that what a container is about to see of this machine is not
// what abl laid out. An engine follows links, as root, and asks nobody.
var ErrSource = errors.New("cannot show this to a container")

// checkSources looks at everything of this machine that mounts would show,
// right before a container is made: real directories below the project, reached
// without a link, none of them in another. The files for output are plain files.
func checkSources(p state.Project, mounts []sandbox.Mount) error {
	if err := apart(p); err != nil {
		return err
	}
	for _, m := range mounts {
		if m.What.IsVolume() {
			continue // the engine's own storage
		}
		way, err := wayTo(p, m.Source)
		if err != nil {
			return err
		}
		switch is := way[len(way)-1]; {
		case m.What == sandbox.CallOut && !is.Mode().IsRegular():
			return refuse(p, m.Source, "it is not a plain file")
		case m.What != sandbox.CallOut && !is.IsDir():
			return refuse(p, m.Source, "it is not a directory")
		case elsewhere(p, is):
			return refuse(p, m.Source, "it is the project itself, or the home or root directory, under another name")
		}
	}
	return nil
}

// elsewhere says that a directory is one that no container is ever to see.
func elsewhere(p state.Project, is fs.FileInfo) bool {
	home, _ := os.UserHomeDir() // "" is none
	return slices.ContainsFunc([]string{p.Root, filepath.Dir(p.State()), home, "/"}, func(path string) bool {
		other, err := os.Stat(path)
		return err == nil && os.SameFile(is, other)
	})
}

// wayTo looks at every step from the project's root down to path, the root
// first. None of them may be a link.
func wayTo(p state.Project, path string) ([]fs.FileInfo, error) {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil, refuse(p, path, "it is not below the project")
	}
	var way []fs.FileInfo
	at := p.Root
	for _, step := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = filepath.Join(at, step)
		is, err := os.Lstat(at)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSource, err)
		}
		if is.Mode()&fs.ModeSymlink != 0 {
			return nil, refuse(p, path, fmt.Sprintf("%q is a link; put the real directory there", p.Rel(at)))
		}
		way = append(way, is)
	}
	return way, nil
}

// apart refuses workspaces, specs and records of which one is, or lies in,
// another, be it under another name, as a bind mount gives one.
func apart(p state.Project) error {
	places := []string{p.Src, p.Tests, p.Specs(), p.Calls()}
	for i, inner := range places {
		way, err := wayTo(p, inner)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // of that whoever mounts it is told
			return err
		}
		for k, outer := range places {
			end, err := os.Lstat(outer)
			through := func(step fs.FileInfo) bool { return os.SameFile(step, end) }
			if err == nil && i != k && slices.ContainsFunc(way, through) {
				return refuse(p, inner, fmt.Sprintf("it is, or lies in, %q", p.Rel(outer)))
			}
		}
	}
	return nil
}

func refuse(p state.Project, path, why string) error {
	return fmt.Errorf("%w: %q: %s", ErrSource, p.Rel(path), why)
}
