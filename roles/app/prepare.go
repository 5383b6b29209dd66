package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"abl/internal/helper"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
)

// Prepare runs a command that installs dependencies in a proven container that sees only the
// source. The command runs in the Builder's workspace, where files that git ignores stay for the
// Builder, and in an export of the commit that the app is started from.
type Prepare struct {
	Setting string // the key of the command: app.prepare, also if empty, or app.build
	Source  Source
	Gate    roles.Gate        // nil for no network
	Files   map[string][]byte // that tools need to use the gateway
	Limit   time.Duration

	mu sync.Mutex // several apps may start at the same time
}

// Source is the Builder's workspace.
type Source interface {
	// Tree returns the files that would be committed now, by path, and the folders that git
	// ignores, with a slash at the end. It stores the content for PutBack.
	Tree(ctx context.Context) (map[string]string, error)
	// PutBack restores the files that Tree returned. It returns the paths that differed, and the
	// special files that it removed.
	PutBack(ctx context.Context, was map[string]string, uid, gid int) (differed []string, cleared []state.Thing, err error)
}

// setting returns the key of the command in the config file.
func (p *Prepare) setting() string { return cmp.Or(p.Setting, "app.prepare") }

// key names the command's record and its container.
func (p *Prepare) key() string { return strings.TrimPrefix(p.setting(), "app.") }

// command returns the command, which is in the app's settings.
func (p *Prepare) command(a *App) string {
	if p.Setting == "app.build" {
		return a.Spec.App.Build
	}
	return a.Spec.App.Prepare
}

// printed returns the last output of the command.
func (p *Prepare) printed(a *App) string {
	return lastPrinted(a.Safe, a.Project.Call(p.key()), "stderr", "stdout")
}

// prepared describes the last successful run of app.prepare.
type prepared struct {
	For  string   `json:"for"`  // see dependencyKey
	Left []string `json:"left"` // folders that git ignores
	Made []string `json:"made"` // those of Left that app.prepare created
}

const preparedFile = "prepared.json"

// PreparedFolders returns the folders in the Builder's workspace that app.prepare created, without
// a slash at the end. The app gets them in addition to the commit.
func PreparedFolders(p state.Project) (all []string) {
	kept, _, _ := roles.Read[prepared](roles.Record{Dir: p.Logs()}, preparedFile) // an unreadable record counts as missing
	for _, folder := range kept.Made {
		all = append(all, strings.TrimSuffix(folder, "/"))
	}
	return all
}

// Prepared installs the dependencies of the Builder's workspace if its lock files or manifests have
// changed. It returns the failure of the command.
func (a *App) Prepared(ctx context.Context, key string) (failed string, err error) {
	p := a.Prepare
	if p == nil {
		return "", nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	was, err := p.Source.Tree(ctx)
	if err != nil {
		return "", err
	}
	now, named := a.dependencyKey(was)
	if !named {
		return "", nil
	}
	logs, mark := roles.Record{Dir: a.Project.Logs()}, preparedFile
	kept, _, _ := roles.Read[prepared](logs, mark) // an unreadable record counts as missing
	missing := func(folder string) bool { _, there := was[folder]; return !there }
	if kept.For == now && !slices.ContainsFunc(kept.Left, missing) {
		return "", nil
	}
	if err = errors.Join(logs.Forget(mark), logs.Write(preparing, was)); err == nil {
		err = a.repeated(ctx, key, func() error {
			failed, err = a.prepare(ctx, key, was)
			return err
		})
	}
	if err == nil {
		err = logs.Forget(preparing)
	}
	if err != nil {
		return "", fmt.Errorf("cannot prepare the source: %w", err)
	}
	failpoint.Here("prepare.done")
	is, err := p.Source.Tree(ctx)
	if failed != "" || err != nil {
		return withPrinted(failed, p.printed(a)), err
	}
	maps.DeleteFunc(is, func(name, _ string) bool { return !strings.HasSuffix(name, "/") })
	left := slices.Sorted(maps.Keys(is))
	made := slices.DeleteFunc(slices.Clone(left), func(folder string) bool {
		return !missing(folder) && !slices.Contains(kept.Made, folder)
	})
	return "", logs.Write(mark, prepared{now, left, made})
}

// preparing contains the state of the source before app.prepare, while the command runs.
const preparing = "preparing.json"

// Unfinished returns the paths of the source that an interrupted app.prepare changed. It deletes
// the record of the interruption if there are no such paths or forget is true.
func Unfinished(ctx context.Context, p state.Project, src Source, forget bool) (differ []string, err error) {
	logs := roles.Record{Dir: p.Logs()}
	was, begun, err := roles.Read[map[string]string](logs, preparing)
	if damaged, is := errors.AsType[*roles.Damaged](err); is && forget {
		_, err = damaged.SetAside()
	}
	if err != nil || !begun {
		return nil, err
	}
	is, err := src.Tree(ctx)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was[name] != is[name] {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 && !forget {
		return differ, nil
	}
	return nil, logs.Forget(preparing)
}

// locks are the names of files that list the exact dependencies of a source, and of manifests that
// are treated alike.
var locks = []string{
	"*.lock", "*.lockb", "*.lockfile", "*-lock.json", "*-lock.yaml", "npm-shrinkwrap.json", "go.mod", "go.sum",
	"requirements*.txt", "constraints*.txt", "pyproject.toml", "setup.py", "setup.cfg", "pom.xml",
}

// manifests name dependencies. One counts only if the source has none of its lock files.
var manifests = map[string][]string{
	"package.json": {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
		"bun.lockb"},
	"Gemfile":          {"Gemfile.lock"},
	"build.gradle":     {"gradle.lockfile"},
	"build.gradle.kts": {"gradle.lockfile"},
	"composer.json":    {"composer.lock"},
	"Cargo.toml":       {"Cargo.lock"},
}

// dependencyKey returns a hash of everything that determines the dependencies. named is false if
// the source has neither a lock file nor a manifest.
func (a *App) dependencyKey(tree map[string]string) (sum string, named bool) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", a.Spec.App.Prepare, a.Spec.Dir, a.Image, a.Env)
	bases := map[string]bool{}
	for name := range tree {
		bases[path.Base(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		base := path.Base(name)
		locked := slices.ContainsFunc(locks, func(pattern string) bool { ok, _ := path.Match(pattern, base); return ok })
		own, manifest := manifests[base]
		if locked || manifest && !slices.ContainsFunc(own, func(lock string) bool { return bases[lock] }) {
			fmt.Fprintf(h, "%q %s\n", name, tree[name])
			named = true
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), named
}

// prepare runs app.prepare in the Builder's workspace and restores the files that are not ignored
// by git: abl tests the files that the Builder left.
func (a *App) prepare(ctx context.Context, key string, was map[string]string) (failed string, err error) {
	begun := time.Now()
	a.emit(key, state.Event{Kind: state.Preparing, Text: a.Spec.App.Prepare})
	end, err := a.Prepare.run(ctx, a, a.Project)
	if err != nil && !a.Gone(context.WithoutCancel(ctx), a.Name(a.Prepare.key())) {
		return "", err // the command may still be running
	}
	uncancelled := context.WithoutCancel(ctx)
	changed, cleared, perr := a.Prepare.Source.PutBack(uncancelled, was, a.UID, a.GID)
	if perr == nil && len(changed) > 0 { // again: a changed .gitignore may have hidden changes
		_, _, perr = a.Prepare.Source.PutBack(uncancelled, was, a.UID, a.GID)
	}
	if err := errors.Join(err, perr); err != nil {
		return "", err
	}
	if len(cleared) > 0 {
		note := "app.prepare left files in the source that abl removed: %.200q (%s), %d in all"
		end.Notes = append(end.Notes, fmt.Sprintf(note, cleared[0].Path, cleared[0].What, len(cleared)))
	}
	return a.Prepare.report(a, key, begun, end, changed), nil
}

// report emits how the command ended, and returns its failure.
func (p *Prepare) report(a *App, key string, begun time.Time, end BuildEnd, changed []string) (failed string) {
	failed = a.Safe.Line(p.why(end, changed))
	printed := ""
	if failed != "" {
		printed = p.printed(a)
		failed += noSpace(end, printed)
	}
	event := state.Event{Kind: state.Prepared, MS: time.Since(begun).Milliseconds(), Text: failed}
	if failed != "" {
		event.Output = printed
		event.Text += "; read " + a.Project.Rel(a.Project.Call(p.key()))
	}
	a.emit(key, event)
	for _, note := range end.Notes {
		a.emit(key, state.Event{Kind: state.Note, Text: note})
	}
	return failed
}

// noSpace names the setting to raise if a command ran out of space: by the file systems that were
// full at its end, or by its output.
func noSpace(end BuildEnd, printed string) string {
	switch {
	case end.Full != "":
		return "; " + end.Full
	case strings.Contains(printed, "ENOSPC"), strings.Contains(strings.ToLower(printed), "no space left on device"):
		return "; no space was left: limits.prepare is the size of its /tmp and of its home, " +
			"limits.disk is the limit of its workspace"
	}
	return ""
}

// why returns the failure of a command, "" if it succeeded.
func (p *Prepare) why(end BuildEnd, changed []string) string {
	name := p.setting()
	switch {
	case end.Gone != "":
		return name + " failed: " + end.Gone
	case end.Over != "":
		return name + " was stopped: " + end.Over
	case end.Late:
		return name + " was stopped after " + p.Limit.String()
	case end.OOMKilled:
		return name + " used more memory than its container has (limits.memory)"
	case end.Exit != 0:
		return fmt.Sprintf("%s ended with exit code %d", name, end.Exit)
	case len(changed) > 0:
		more := ""
		if n := len(changed) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return fmt.Sprintf("%s changed %.200q%s, and abl undid the change: "+
			"name the files that it creates in .gitignore, and use a command that keeps lock files, such as npm ci", name,
			changed[0], more)
	}
	return ""
}

// run runs the command to its end, in the source of a project.
func (p *Prepare) run(ctx context.Context, a *App, in state.Project) (end BuildEnd, err error) {
	rec := roles.Record{Dir: a.Project.Call(p.key())}
	b := &Builds{
		Containers: a.Containers,
		Project:    in,
		Image:      a.Image,
		Argv:       []string{"sh", "-c", p.command(a)},
		Dir:        strings.TrimPrefix(a.Spec.Dir, helper.Src),
		Env:        a.Env,
		Gate:       p.Gate,
		Files:      p.Files,
		Exported:   in.Src != a.Project.Src,
	}
	end, err = b.Run(ctx, Build{Key: p.key(), Limit: p.Limit, Stdout: io.Discard, Stderr: io.Discard})
	return end, errors.Join(err, roles.CleanOutput(a.Safe, rec.Dir, "stdout", "stderr"))
}
