package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// Dir is the name of the directory that marks the root of a project.
const Dir = ".abl"

// ErrNone is the error of Find if neither the directory nor any parent is a project.
var ErrNone = errors.New("no .abl directory here or above")

// Project holds the absolute paths of a project.
type Project struct {
	Root  string // real path of the directory that contains .abl
	Src   string // the Builder's workspace
	Tests string // the Verifier's workspace
}

// Find returns the root of the project that contains dir: the nearest directory, from dir
// upwards, with a .abl directory that is not a link.
func Find(dir string) (string, error) {
	real, err := Real(dir)
	if err != nil {
		return "", fmt.Errorf("cannot find the project: %w", err)
	}
	for at := real; ; at = filepath.Dir(at) {
		if fi, err := os.Lstat(filepath.Join(at, Dir)); err == nil && fi.IsDir() {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", ErrNone
		}
	}
}

// Real returns the absolute path of dir with all links resolved.
func Real(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// maxEntries is the maximum number of entries of .abl.
const maxEntries = 10_000

// CheckOwn returns an error if one of abl's own files in the project at root is a link, FIFO,
// socket or device. No role can write there, so such a file came with the project, and abl would
// follow it. CheckOwn skips the other directories of .abl: they may be workspaces or build
// contexts of images.
func CheckOwn(root string) error {
	names, err := hostfs.Names(root, Dir, maxEntries)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	lastLog := func(name string) bool { // abl itself links to the last log
		return filepath.Ext(name) == ".log" && !strings.Contains(name, "/")
	}
	for _, name := range names {
		at, deep := filepath.Join(Dir, name), name == "logs" || name == "reports" || name == "specs"
		if info, lerr := os.Lstat(filepath.Join(root, at)); err == nil && (deep || lerr == nil && !info.IsDir()) {
			err = hostfs.Plain(root, at, lastLog)
		}
	}
	return err
}

// NewProject returns the paths of the project at root. src and tests are relative to root.
func NewProject(root, src, tests string) Project {
	return Project{Root: root, Src: filepath.Join(root, src), Tests: filepath.Join(root, tests)}
}

func (p Project) abl(elem ...string) string {
	return filepath.Join(append([]string{p.Root, Dir}, elem...)...)
}

// Specs returns the path of the directory with the spec files.
func (p Project) Specs() string { return p.abl("specs") }

// State returns the path of state.json.
func (p Project) State() string { return p.abl("state.json") }

// Lock returns the path of the file that a running abl locks.
func (p Project) Lock() string { return p.abl("lock") }

// Boot returns the path of the file with the machine's boot id at the time abl last compared the
// source with its commit.
func (p Project) Boot() string { return p.abl("logs", "boot") }

// Torn returns the path of the directory for files that a power failure damaged. abl moves them
// there before it restores them.
func (p Project) Torn() string { return p.abl("logs", "torn") }

// Forwards returns the path of the file with the addresses on which abl listens for gateways that
// reach the host's loopback. A restarted abl listens there again.
func (p Project) Forwards() string { return p.abl("forwards.json") }

// Logs returns the path of the directory with the run logs and the ledger.
func (p Project) Logs() string { return p.abl("logs") }

// Ledger returns the path of tokens.csv.
func (p Project) Ledger() string { return p.abl("logs", "tokens.csv") }

// LastLog returns the path of the output of the role's last call.
func (p Project) LastLog(role string) string { return p.abl("logs", role+".log") }

// Calls returns the path of the directory with the records of all calls.
func (p Project) Calls() string { return p.abl("logs", "calls") }

// Call returns the path of the record of one call. key is <call>.<attempt>.
func (p Project) Call(key string) string { return p.abl("logs", "calls", key) }

// Ignored returns the path of abl's list of uncommitted files in the role's workspace that can
// make a tool of the user run something.
func (p Project) Ignored(role string) string { return p.abl("logs", "ignored-"+role) }

// Empty returns the path of an empty directory, which is mounted over hidden directories.
func (p Project) Empty() string { return p.abl("logs", "calls", ".empty") }

// Cache returns a path in the directory for data that abl can create again: exports of commits
// and dependencies.
func (p Project) Cache(elem ...string) string { return p.abl(append([]string{"cache"}, elem...)...) }

// Reports returns the path of the directory with the audit records.
func (p Project) Reports() string { return p.abl("reports") }

// Map returns the path of project_map.txt.
func (p Project) Map() string { return p.abl("project_map.txt") }

// Description returns the path of project.md.
func (p Project) Description() string { return p.abl("project.md") }

// Prompt returns the path of the user's prompt for a role, which may not exist.
func (p Project) Prompt(role string) string {
	return filepath.Join(p.Root, "prompts", role+".md")
}

// Env returns the path of the file with secrets, which only abl reads.
func (p Project) Env() string { return filepath.Join(p.Root, ".env") }

// Rel returns path relative to the root of the project if it is below it, else path.
func (p Project) Rel(path string) string {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}

// UserDir returns the directory with abl's data about the projects of this user:
// $XDG_STATE_HOME/abl, or ~/.local/state/abl.
func UserDir() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "abl"), nil
}
