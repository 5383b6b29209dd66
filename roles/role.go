// Package roles defines the two roles of a phase and the records of their calls. The packages below it
// run the calls: boundary describes and proves containers, app runs the app under test, call runs an
// agent, and replay runs saved tests. Package orchestrator decides what a phase does next.
package roles

import (
	"cmp"
	"errors"
	"fmt"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
)

// Role describes the Builder, the Verifier or another user of a container.
type Role struct {
	Name    string // builder or verifier
	Verb    string // build or verify, for commit subjects
	Dir     string // workspace inside the container
	Reports string // directory of run reports below the workspace
	TmpExec bool   // programs may be run from /tmp, as build tools do
	App     bool   // the app runs during the call, and runs the declared commands for it
	Fetches bool   // its tools may reach the hosts of network.allow
	// Its container contains only its workspace and the input of its call.
	NoSpecs bool
	Sealed  bool   // its workspace is read-only
	Within  string // folder of the workspace that it starts in, "" for the whole
	Tmp     int64  // bytes of /tmp, 0 for the default
}

// The two roles of a phase. Only the Builder changes code.
var (
	Builder = Role{
		Name:    "builder",
		Verb:    "build",
		Dir:     helper.Src,
		Reports: "builder_reports",
		TmpExec: true,
		Fetches: true,
	}
	Verifier = Role{Name: "verifier", Verb: "verify", Dir: helper.Tests, Reports: "verifier_reports", App: true}
)

// Both returns the two roles in the order in which they work.
func Both() []Role { return []Role{Builder, Verifier} }

// Workspace returns the role's workspace directory on the host.
func (r Role) Workspace(p state.Project) string {
	if r.Dir == helper.Tests {
		return p.Tests
	}
	return p.Src
}

// Key returns the idempotency key of a call: abl runs a call once per key.
func Key(phase int, r Role, step, attempt int) string {
	return fmt.Sprintf("p%d-%s-%d.%d", phase, r.Verb, step, attempt)
}

// KeyParts are the parts of a key.
type KeyParts struct {
	Role                 Role
	Phase, Step, Attempt int
}

// ParseKey is the inverse of Key. It returns false for any other text.
func ParseKey(key string) (k KeyParts, ok bool) {
	for _, k.Role = range Both() {
		_, err := fmt.Sscanf(key, "p%d-"+k.Role.Verb+"-%d.%d", &k.Phase, &k.Step, &k.Attempt)
		if err == nil && key == Key(k.Phase, k.Role, k.Step, k.Attempt) {
			return k, true
		}
	}
	return KeyParts{}, false
}

// Subject returns the commit subject of a step. The subject of a further attempt at a call
// contains the attempt's number, so that each subject is unique.
func Subject(phase int, r Role, step, attempt int) string {
	subject := fmt.Sprintf("phase%d/%s/step-%d", phase, r.Verb, step)
	if attempt > 1 {
		subject += fmt.Sprintf(".%d", attempt)
	}
	return subject
}

// Mounts returns the mounts of a role's container: its workspace with a read-only .git over it,
// the specs, the call's input, and the two files for its output.
func Mounts(r Role, p state.Project, rec Record) []sandbox.Mount {
	work := r.Workspace(p)
	mounts := []sandbox.Mount{{What: sandbox.Workspace, Source: work, Target: r.Dir, ReadOnly: r.Sealed}}
	if !r.NoSpecs {
		mounts = append(mounts,
			sandbox.Mount{What: sandbox.GitDir, Source: work + "/.git", Target: r.Dir + "/.git", ReadOnly: true},
			sandbox.Mount{What: sandbox.Specs, Source: p.Specs(), Target: helper.Specs, ReadOnly: true})
	}
	return append(mounts, OutputMounts(rec)...)
}

// Spaces are the sizes of a container's in-memory file systems in bytes, 0 for the default.
type Spaces struct {
	Tmp     int64 // /tmp
	Home    int64
	Shm     int64 // /dev/shm
	Prepare int64 // /tmp and the home of app.prepare and builds, each
}

// Tmpfs returns the in-memory file systems of a role's container.
func (s Spaces) Tmpfs(r Role) []sandbox.Tmpfs {
	tmp, home := max(r.Tmp, cmp.Or(s.Tmp, 512<<20)), cmp.Or(s.Home, 256<<20)
	return []sandbox.Tmpfs{
		{Target: "/tmp", Size: tmp, Inodes: inodes(tmp, 50_000), Mode: "1777", Exec: r.TmpExec},
		{Target: helper.Home, Size: home, Inodes: inodes(home, 20_000), Mode: "0700", Owned: true, Exec: true},
	}
}

// inodes returns the number of files that a file system of size bytes may hold, at least least.
func inodes(size, least int64) int64 {
	const perFile = 10 << 10 // bytes
	return max(least, size/perFile)
}

// PrepareTmpfs returns the in-memory file systems of app.prepare and of builds. Package managers
// keep their caches in the home directory.
func (s Spaces) PrepareTmpfs() []sandbox.Tmpfs {
	size := cmp.Or(s.Prepare, 1<<30)
	return []sandbox.Tmpfs{
		{Target: "/tmp", Size: size, Mode: "1777", Exec: true},
		{Target: helper.Home, Size: size, Mode: "0700", Owned: true, Exec: true},
	}
}

// LastStep returns the highest step of a phase that has a record, or 0. A phase whose state was
// reset continues after it, because the call names, ledger rows and commits of earlier steps
// exist already.
func LastStep(p state.Project, phase int) (int, error) {
	names, err := Names(p.Calls())
	if err != nil {
		return 0, fmt.Errorf("cannot list the calls: %w", err)
	}
	last := 0
	for _, name := range names {
		if k, ok := ParseKey(name); ok && k.Phase == phase {
			last = max(last, k.Step)
		}
	}
	return last, nil
}

// Names returns the sorted names in a folder of records, nothing if the folder is missing.
func Names(dir string) (names []string, err error) {
	const most = 1_000_000
	names, err = hostfs.Names(dir, ".", most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	return names, err
}

// OutputMounts returns the mounts of every container whose first program is abl-run.
func OutputMounts(rec Record) []sandbox.Mount {
	return []sandbox.Mount{
		{What: sandbox.CallIn, Source: rec.In(), Target: helper.In, ReadOnly: true},
		{What: sandbox.CallOut, Source: rec.Stdout(), Target: helper.Out},
		{What: sandbox.CallOut, Source: rec.Stderr(), Target: helper.Err},
	}
}
