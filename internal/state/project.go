package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// Dir is the directory that makes a directory a project.
const Dir = ".abl"

// ErrNone means that neither the directory nor one above it is a project.
var ErrNone = errors.New("no .abl directory here or above")

// Project is a project's paths, all absolute.
type Project struct {
	Root  string // real path of the directory that holds .abl
	Src   string // the Builder's workspace
	Tests string // the Verifier's workspace
}

// Find returns the root of the project that holds dir: dir itself or the
// nearest directory above it with a real .abl directory in it.
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

// Real is the absolute path of dir without a link in it.
func Real(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// most is how many names .abl may have at its top.
const most = 10_000

// CheckOwn returns an error that names a link, FIFO, socket or device among abl's files in the
// project at root. No role can write there, so it came with the project, and abl would read or
// write what it leads to. Below other directories of .abl, which may be workspaces or what images
// are built from, it does not look.
func CheckOwn(root string) error {
	names, err := hostfs.Names(root, Dir, most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	lastLog := func(name string) bool { return filepath.Ext(name) == ".log" && !strings.Contains(name, "/") } // abl's link
	for _, name := range names {
		at, deep := filepath.Join(Dir, name), name == "logs" || name == "reports" || name == "specs"
		if info, lerr := os.Lstat(filepath.Join(root, at)); err == nil && (deep || lerr == nil && !info.IsDir()) {
			err = hostfs.Plain(root, at, lastLog)
		}
	}
	return err
}

// NewProject returns the paths of the project at root with its two configured
// directories, which are relative to root.
func NewProject(root, src, tests string) Project {
	return Project{Root: root, Src: filepath.Join(root, src), Tests: filepath.Join(root, tests)}
}

func (p Project) abl(elem ...string) string {
	return filepath.Join(append([]string{p.Root, Dir}, elem...)...)
}

// Specs is the directory of the phase files.
func (p Project) Specs() string { return p.abl("specs") }

// State is state.json.
func (p Project) State() string { return p.abl("state.json") }

// Lock is the file whose lock says that an abl works here.
func (p Project) Lock() string { return p.abl("lock") }

// Boot has the boot id of the machine when abl last compared the source with its commit.
func (p Project) Boot() string { return p.abl("logs", "boot") }

// Torn is where abl keeps what a power cut left of files that it restored.
func (p Project) Torn() string { return p.abl("logs", "torn") }

// Forwards notes where abl listens for gateways on behalf of this machine's
// loopback, so that an abl that comes back listens there again.
func (p Project) Forwards() string { return p.abl("forwards.json") }

// Logs is the directory of run logs and the ledger.
func (p Project) Logs() string { return p.abl("logs") }

// Ledger is tokens.csv.
func (p Project) Ledger() string { return p.abl("logs", "tokens.csv") }

// LastLog is the output of the role's last call.
func (p Project) LastLog(role string) string { return p.abl("logs", role+".log") }

// Calls is where every call keeps its record.
func (p Project) Calls() string { return p.abl("logs", "calls") }

// Call is the record of one call, named by <call>.<attempt>.
func (p Project) Call(key string) string { return p.abl("logs", "calls", key) }

// Ignored is what abl remembers of the files in a role's workspace that are in no
// commit and steer a person's tools.
func (p Project) Ignored(role string) string { return p.abl("logs", "ignored-"+role) }

// Empty is a directory without content that covers what must not be seen.
func (p Project) Empty() string { return p.abl("logs", "calls", ".empty") }

// Cache is a directory of what abl can make again: clean exports of commits, and dependencies.
func (p Project) Cache(elem ...string) string { return p.abl(append([]string{"cache"}, elem...)...) }

// Reports is where audit records stand.
func (p Project) Reports() string { return p.abl("reports") }

// Map is project_map.txt.
func (p Project) Map() string { return p.abl("project_map.txt") }

// Description is project.md.
func (p Project) Description() string { return p.abl("project.md") }

// Prompt is the person's own prompt of a role, which may be absent.
func (p Project) Prompt(role string) string {
	return filepath.Join(p.Root, "prompts", role+".md")
}

// Env is the file of secrets, which abl alone reads.
func (p Project) Env() string { return filepath.Join(p.Root, ".env") }

// Rel shortens a path below the project for a person's eyes.
func (p Project) Rel(path string) string {
	rel, err := filepath.Rel(p.Root, path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}
