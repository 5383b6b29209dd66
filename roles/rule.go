package roles

import (
	"cmp"
	"fmt"
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
	mounts   []sandbox.Mount // all of them; of a volume What, Target and not Source
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

// ofApp is the rule for the app, whose record is dir.
func ofApp(p state.Project, id, dir, holder string) rule {
	return rule{
		id: id, holder: holder, networks: []string{"app"},
		absent: append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")),
		mounts: []sandbox.Mount{
			{What: sandbox.Tree, Target: "/workspace/src"},
			{What: sandbox.Empty, Source: filepath.Join(p.Root, ".abl/logs/calls/.empty"), Target: "/workspace/src/.git", ReadOnly: true},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: "/abl/out/events"},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: "/abl/out/app.log"},
		},
	}
}

// ofReplay is the rule for the tests of a commit. Where the app has no door they are on its network.
func ofReplay(p state.Project, id, dir, holder string, door bool) rule {
	rules := rule{
		id: id, holder: holder, absent: unseen(Verifier, p),
		mounts: append(calls(dir), sandbox.Mount{What: sandbox.Scratch, Target: "/workspace"}),
	}
	if !door {
		rules.networks = []string{"app", "verifier"}
	}
	return rules
}

// ofBuild is the rule for a build of code-commit.
func ofBuild(id, dir string, absent []string, gated bool) rule {
	rules := rule{id: id, absent: absent, mounts: append(calls(dir), sandbox.Mount{What: sandbox.Scratch, Target: "/workspace"})}
	if gated {
		rules.holder, rules.networks = "builder", []string{"builder"}
	}
	return rules
}

// ofPreparation is the rule for what prepares the source in its place.
func ofPreparation(p state.Project, id, dir string, gated bool) rule {
	rules := ofBuild(id, dir, append(unseen(Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")), gated)
	rules.mounts = append(calls(dir), workspace(p, p.Src, "/workspace/src")[:2]...)
	if gated {
		rules.networks = []string{"builder", "trial"} // a Builder's, in which nobody else is meanwhile
	}
	return rules
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
		sandbox.Same("rule of mounts", r.words(r.mounts), r.words(box.Mounts)),
		sandbox.Same("rule of memory mounts", "/home/agent /tmp", bounded(box.Tmpfs)),
		r.reach(box.Reach),
		sandbox.Same("rule of users", "", privileged(box)),
		sandbox.Same("rule of limits", "", unlimited(box.Limits)),
	}
}

// words are mounts in words, sorted. A volume is told by whose it is.
func (r rule) words(mounts []sandbox.Mount) string {
	var all []string
	for _, m := range mounts {
		source, way := m.Source, "read and write"
		if m.What.IsVolume() {
			if source == "" || strings.HasPrefix(source, BoxName(r.id, "")) {
				source = "a volume of the project's"
			}
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
	var all []string
	uid, gid, both := strings.Cut(box.User, ":")
	for name, is := range map[string]bool{
		"root":      strings.Trim(uid, "0") == "" || strings.Trim(gid, "0") == "" || !both,
		"a service": box.Loose, "a holder": box.Seals, "among the processes of another": box.Below,
	} {
		if is {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// unlimited names what a box may have without end.
func unlimited(l sandbox.Limits) string {
	var all []string
	for name, set := range map[string]bool{"memory": l.Memory > 0, "cpus": l.CPUs > 0, "processes": l.Pids > 0, "file size": l.FileSize > 0, "open files": l.OpenFile > 0} {
		if !set {
			all = append(all, name+" without a limit")
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// inside is the box as a probe in it has to find it: by the rule and not by intent.
func (r rule) inside(box sandbox.Box) sandbox.Box {
	box.Mounts = r.mounts
	return box
}
