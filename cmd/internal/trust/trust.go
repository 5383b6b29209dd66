// Package trust keeps settings of another author from acting as the user's own. A value of user
// scope (internal/config) in a file that git tracks, or that another user of this machine owns,
// counts only after `abl trust`, which records its hash in the user's state directory, or for one
// run with --trust.
package trust

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/state"
	"abl/internal/wording"
)

// Value is a value of user scope in a file that git tracks or that another user owns.
type Value struct {
	config.UserValue
	Trusted bool
	hash    string
	others  bool // another user owns the file
}

// Flag accepts all values for one run.
var Flag = cli.Flag{
	Name: "trust", Env: "ABL_TRUST",
	Usage: "for this run, accept settings of the repository that act on this machine (see abl trust)",
}

// Check returns a usage error that lists the values that the user has not trusted. more are values that
// only this command uses. With --trust it returns nil.
func Check(ctx context.Context, in *cli.Input, root string, conf *config.Loaded, more ...config.UserValue) error {
	if in.Bool(Flag.Name) {
		return nil
	}
	all, err := Values(ctx, root, conf, more...)
	if err != nil {
		return err
	}
	var open []string
	hint, who := "if .env is yours, keep it out of git: git rm --cached .env; otherwise ", "git tracks"
	for _, v := range all {
		if v.Trusted {
			continue
		}
		open = append(open, v.String()+" "+v.Why)
		if v.File != config.EnvFile || v.others {
			hint = ""
		}
		if v.others {
			who = "another user of this machine has written"
		}
	}
	if len(open) == 0 {
		return nil
	}
	return exit.With(exit.Usage,
		fmt.Errorf("%s %s that may not be yours: %s", who, wording.Count(len(open), "setting"), wording.Few(open, 4, "; ")),
		hint+"`abl trust` lists them and accepts them on this machine; in CI use --trust or ABL_TRUST=1 (docs/security.md)")
}

// String returns FILE:LINE: KEY=VALUE.
func (v Value) String() string {
	return fmt.Sprintf("%s: %s=%s", v.Place(), v.Key, wording.Cut(wording.OneLine(v.Text), 80))
}

// Place returns FILE:LINE.
func (v Value) Place() string {
	if v.Line == 0 {
		return v.File
	}
	return fmt.Sprintf("%s:%d", v.File, v.Line)
}

// Values returns the values of user scope in files that another user owns, or that git tracks, or
// may track when git cannot tell.
func Values(ctx context.Context, root string, conf *config.Loaded, more ...config.UserValue) (all []Value, err error) {
	known, err := load(root)
	if err != nil {
		return nil, err
	}
	asked, others := map[string]bool{}, map[string]bool{}
	for _, u := range append(conf.UserValues(), more...) {
		for _, file := range []string{u.File, u.Reads} {
			if _, done := asked[file]; !done && file != "" {
				others[file] = ofAnother(root, file)
				asked[file] = others[file] || tracked(ctx, root, file)
			}
		}
		switch {
		case !asked[u.File] && !asked[u.Reads],
			u.Shows != "" && isInGit(ctx, root, u.Shows),
			u.Lends != "" && !hasUntracked(ctx, root, u.Lends):
			continue
		}
		v := Value{UserValue: u, others: others[u.File] || others[u.Reads]}
		if v.hash, err = hash(root, u); err != nil {
			return nil, err
		}
		v.Trusted = known[v.hash]
		all = append(all, v)
	}
	return all, nil
}

// ofAnother reports whether a file of the project belongs to another user than this one and root.
// For root, who also works for others, the owner of the project counts as this one. A project can
// be a folder above the user's own, such as /tmp, in which others make files.
func ofAnother(root, file string) bool {
	var of, top unix.Stat_t
	if unix.Lstat(filepath.Join(root, file), &of) != nil || unix.Lstat(root, &top) != nil {
		return false // config has read the file; one that is gone sets nothing
	}
	own := uint32(os.Geteuid())
	return of.Uid != 0 && of.Uid != own && (own != 0 || of.Uid != top.Uid)
}

// records are the files and folders with abl's state, its calls, and the exports that it tests.
var records = []string{state.Dir + "/state.json", state.Dir + "/logs/calls", state.Dir + "/cache"}

// CheckRecords returns a usage error if git tracks abl's own record of phases and calls: a
// repository could bring a pass that no abl has seen. What is published is checked by abl pull.
func CheckRecords(ctx context.Context, root string) error {
	for _, file := range records {
		if _, err := os.Lstat(filepath.Join(root, file)); err == nil && tracked(ctx, root, file) {
			return exit.With(exit.Usage, fmt.Errorf("git tracks %s, so another author may have written it", file),
				fmt.Sprintf("git rm -r --cached %[1]s if it is yours, otherwise delete it; keep it in .gitignore", file))
		}
	}
	return nil
}

// tracked reports whether git tracks a file of the project, in whatever case, or cannot tell.
func tracked(ctx context.Context, root, file string) bool {
	// From the root for a folder whose name differs by case, from the file's own for a submodule.
	for _, at := range []string{".", filepath.Dir(file)} {
		// A project of another user's is read like the user's own: ls-files runs nothing.
		said, err := proc.AskGit(ctx, filepath.Join(root, at), "-c", "safe.directory=*",
			"ls-files", "--", ":(icase)"+strings.TrimPrefix(file, at+"/"))
		if errors.Is(err, exec.ErrNotFound) {
			return inRepository(root)
		}
		if err != nil || said != "" {
			return true
		}
	}
	return false
}

// isInGit reports whether git tracks a file under exactly this name, so that the author of the
// repository has it anyway.
func isInGit(ctx context.Context, root, file string) bool {
	said, err := proc.AskGit(ctx, root, "-c", "safe.directory=*", "ls-files", "--", ":(literal)"+file)
	return err == nil && said == file
}

// hasUntracked reports whether a folder of the project holds files that git does not track, or git
// cannot tell. The workspaces of a phase that has begun are abl's: they have its last commit.
func hasUntracked(ctx context.Context, root, folder string) bool {
	ask := func(at string, args ...string) (string, error) {
		return proc.AskGit(ctx, filepath.Join(root, at), append([]string{"-c", "safe.directory=*"}, args...)...)
	}
	if f, err := state.Load(state.NewProject(root, "", "").State()); err == nil && len(f.Begun()) > 0 {
		src, tests := f.Commits()
		for _, commit := range []string{src, tests} {
			if commit == "" { // no call has ended yet
				return false
			}
			if _, err := ask(folder, "cat-file", "-e", commit+"^{commit}"); err == nil {
				return false
			}
		}
	}
	said, err := ask(".", "ls-files", "--others", "--directory", "--no-empty-directory", "--", ":(literal)"+folder)
	return err != nil || said != ""
}

// inRepository reports whether dir or a folder above it has a .git.
func inRepository(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, ".git"))
	return !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) != dir && inRepository(filepath.Dir(dir))
}

// maxRead is the largest file that a value can name, in bytes.
const maxRead = 4 << 20

// hash returns the hash of a value, the content of the file that it names, and the project.
func hash(root string, v config.UserValue) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q ", root, v.Key, v.Text)
	if v.Reads != "" {
		data, err := hostfs.Read(root, v.Reads, maxRead)
		if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return "", exit.With(exit.Usage, fmt.Errorf("cannot read the file of %s: %w", v.Key, err), "")
		}
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// record lists the trusted values of a project. It is a file in the user's state directory.
type record struct {
	Project string   `json:"project"`
	Values  []string `json:"values"` // SHA-256 of each trusted value
}

// path returns the file with the record of a project.
func path(root string) (string, error) {
	dir, err := state.UserDir()
	if err != nil {
		return "", err
	}
	name := sha256.Sum256([]byte(root))
	return filepath.Join(dir, "trust", hex.EncodeToString(name[:16])+".json"), nil
}

// load returns the hashes of the trusted values of a project.
func load(root string) (map[string]bool, error) {
	at, err := path(root)
	if err != nil { // without a home, as in some CI jobs
		return nil, nil
	}
	data, err := hostfs.Read(filepath.Dir(at), filepath.Base(at), maxRead)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	var r record
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot read %q: %w", at, err),
			"delete the file, then run `abl trust` again")
	}
	known := map[string]bool{}
	for _, value := range r.Values {
		known[value] = true
	}
	return known, nil
}

// Record replaces the trusted values of a project. Without values it deletes the record.
func Record(root string, values []Value) error {
	at, err := path(root)
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot record what you trust: %w", err),
			"set HOME, or use --trust for each run")
	}
	if len(values) == 0 {
		return hostfs.Remove(filepath.Dir(at), filepath.Base(at))
	}
	r := record{Project: root}
	for _, v := range values {
		r.Values = append(r.Values, v.hash)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(at), 0o700)
	}
	if err == nil {
		err = hostfs.Write(at, append(data, '\n'), 0o600)
	}
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot record what you trust: %w", err),
			"make the folder writable, or use --trust for each run")
	}
	return nil
}
