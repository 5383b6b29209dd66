package boundary

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles"
)

// Rule describes what a container may have. It does not use the code that describes containers
// (roles.Mounts, Containers.Worker, Containers.Reach), so that an error there is detected before the start, and
// again from inside.
type Rule struct {
	id       string          // of the project on the engine
	mounts   []sandbox.Mount // all of them
	holder   string          // place whose network is joined, "" for no network
	networks []string        // that this network may be on
	absent   []string        // paths that must not exist
}

// RoleRule returns the rule for a call of a role, whose record is dir.
func RoleRule(r roles.Role, p state.Project, id, dir string, proxied bool) Rule {
	rules := Rule{id: id, absent: unseen(r, p)}
	switch {
	case r.NoSpecs:
		source := sandbox.Mount{What: sandbox.Workspace, Source: p.Src, Target: "/workspace/src", ReadOnly: r.Sealed}
		rules.mounts = append(callMounts(dir), source)
		rules.holder, rules.networks = "builder", []string{"builder"}
	case r.App:
		rules.mounts = append(callMounts(dir), workspaceMounts(p, p.Tests, "/workspace/tests")...)
		rules.holder, rules.networks = "verifier", []string{"verifier"}
		if !proxied {
			rules.networks = append(rules.networks, "app")
		}
	default:
		rules.mounts = append(callMounts(dir), workspaceMounts(p, p.Src, "/workspace/src")...)
		rules.holder, rules.networks = "builder", []string{"builder", "trial"}
	}
	return rules
}

// AppRule returns the rule for the app at a place, whose record is dir. The app sees a view of the
// source, or a copy.
func AppRule(p state.Project, id, dir, holder string, copied bool) Rule {
	tree := ContainerName(id, holder+"-tree")
	if copied {
		tree = ContainerName(id, holder+"-scratch")
	}
	return Rule{
		id:       id,
		holder:   holder,
		networks: []string{"app"},
		absent:   append(unseen(roles.Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs")),
		mounts: []sandbox.Mount{
			{What: sandbox.Tree, Source: tree, Target: "/workspace/src"},
			{
				What:     sandbox.Empty,
				Source:   filepath.Join(p.Root, ".abl/logs/calls/.empty"),
				Target:   "/workspace/src/.git",
				ReadOnly: true,
			},
			{What: sandbox.CallIn, Source: filepath.Join(dir, "in"), Target: "/abl/in", ReadOnly: true},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "events"), Target: "/abl/out/events"},
			{What: sandbox.CallOut, Source: filepath.Join(dir, "app.log"), Target: "/abl/out/app.log"},
		},
	}
}

// ReplayRule returns the rule for the tests of a commit, in a volume named after the replay. Without
// a proxy the tests are on the app's network.
func ReplayRule(p state.Project, id, dir, name, holder string, proxied bool) Rule {
	rules := Rule{
		id:     id,
		holder: holder,
		absent: unseen(roles.Verifier, p),
		mounts: append(callMounts(dir), scratch(id, name)),
	}
	if !proxied {
		rules.networks = []string{"app", "verifier"}
	}
	return rules
}

// BuildRule returns the rule for a build of code-commit, in a volume named after the build.
func BuildRule(id, dir, name string, absent []string, gated bool) Rule {
	rules := Rule{id: id, absent: absent, mounts: append(callMounts(dir), scratch(id, name))}
	if gated {
		rules.holder, rules.networks = "builder", []string{"builder"}
	}
	return rules
}

// PrepareRule returns the rule for app.prepare, which runs in the Builder's workspace or in an
// export without .git.
func PrepareRule(p state.Project, id, dir string, gated, exported bool) Rule {
	absent := append(unseen(roles.Builder, p), "/workspace/specs", filepath.Join(p.Root, ".abl/specs"))
	rules := BuildRule(id, dir, "", absent, gated)
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
	return sandbox.Mount{What: sandbox.Scratch, Source: ContainerName(id, name), Target: "/workspace"}
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

// Expected returns the configuration of a container with the mounts and options that the rule
// allows. abl compares it with the container that the engine reports, not with the request that
// created it.
func (r Rule) Expected(container sandbox.ContainerConfig) sandbox.ContainerConfig {
	container.Mounts = r.mounts
	container.Loose, container.Seals, container.Below = false, false, false // options of holders and services only
	return container
}

// Check compares the parts of a container's description that the rule only bounds.
func (r Rule) Check(container sandbox.ContainerConfig) sandbox.Proof {
	uid, gid, both := strings.Cut(container.User, ":")
	root := strings.Trim(uid, "0") == "" || strings.Trim(gid, "0") == "" || !both
	return sandbox.Proof{
		sandbox.Same("rule of memory mounts", "/home/agent /tmp", tmpfsText(container.Tmpfs)),
		r.reach(container.Reach),
		sandbox.Same("rule of root", "false", fmt.Sprint(root)),
		sandbox.Same("rule of limits", "", unlimited(container.Limits)),
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

// hasNoNetwork reports whether a container has no network.
func hasNoNetwork(container sandbox.ContainerConfig) bool {
	return container.Reach.Join == "" && len(container.Reach.Endpoints) == 0
}

// networkNames returns the engine's names of the networks that a container may be on.
func (r Rule) networkNames() (all []string) {
	for _, place := range r.networks {
		all = append(all, ContainerName(r.id, "net-"+place))
	}
	return all
}

// reach checks which network a container joins.
func (r Rule) reach(got sandbox.Reach) sandbox.Check {
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
	case r.holder == "" || got.Join != ContainerName(r.id, "holder-"+r.holder) || got.Through == nil:
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

// unseen returns the paths that must not exist in the role's container.
func unseen(r roles.Role, p state.Project) []string {
	top := path.Dir(helper.Src)
	all := []string{top + "/.git", top + "/.env", top + "/" + state.Dir, filepath.Join(p.Root, state.Dir), p.Env()}
	switch {
	case r.NoSpecs:
		return append(all, helper.Specs, helper.Tests)
	case r.Dir == helper.Tests:
		return append(all, p.State(), p.Ledger(), helper.Src, p.Src)
	}
	return append(all, p.State(), p.Ledger(), helper.Tests, p.Tests)
}
