package archtest

// careful lists the packages that handle files of agents. They open files through
// internal/hostfs, which follows no links, never blocks, and only opens regular files.
const (
	careful = "roles/... orchestrator/... cmd/abl cmd/internal/... internal/..."
	exempt  = "internal/hostfs internal/testing/..." // implements the checks; not in any program
)

// openers lists the functions that open or follow a path without these checks.
const openers = "os.Open os.OpenFile os.ReadFile os.ReadDir os.Readlink os.OpenRoot os.OpenInRoot os.DirFS os.CopyFS " +
	"os.WriteFile os.Create os.CreateTemp " +
	"filepath.Walk filepath.WalkDir filepath.Glob " +
	"unix.Open unix.Openat unix.Openat2 unix.Readlinkat syscall.Open"

// readers lists the files that may use openers, each with the reason: neither a role nor a
// repository can have created the opened file or a link on its path.
var readers = map[string]string{
	"cmd/abl/debug.go":               "a file that the user names",
	"cmd/abl/images.go":              "an archive that the user names",
	"cmd/abl/demo.go":                "the demo's empty directory",
	"cmd/internal/setup/init.go":     "the project before its first phase",
	"cmd/internal/commit/command.go": "the project before its first phase",
	"cmd/internal/look/outputs.go":   "a file that the user's CI names",
	"cmd/internal/learn/command.go":  "a file that the user names",
	"orchestrator/learner/home.go":   "lists the project's folder, which no container mounts; copies without links",
	"roles/agent/player.go":          "inside the role's container",
	"roles/app/deps.go":              "a copy that abl made, within an os.Root, after its container has ended",
	"roles/app/export.go":            "lists abl's own cache, which no role can write",

	"orchestrator/codecommit/apply.go":   "moves files of the user's tree within an os.Root, after checking every path",
	"orchestrator/codecommit/project.go": "lists the log folders",

	"internal/broker/apprun.go":   "inside a container, within an os.Root",
	"internal/broker/record.go":   "inside the app's container",
	"internal/helper/wire.go":     "inside a container, a file that abl put there",
	"internal/broker/ports.go":    "the kernel's files",
	"internal/proc/list_linux.go": "the kernel's files",

	"internal/sandbox/docker/connect.go": "the user's engine settings",

	"internal/git/repo.go":       "lists .git, without entering links",
	"internal/git/checkout.go":   "writes within an os.Root, into folders that it has checked",
	"internal/git/export.go":     "writes within an os.Root, into a directory that abl has just created",
	"internal/git/submodule.go":  "finds links above a submodule in the user's work tree",
	"internal/git/gitdir/dir.go": ".git",
	"internal/git/scan/scan.go":  "the walk itself, for which hostfs is too slow: no links followed",
}

// judgeReads returns the places where a careful package opens a path directly.
func (f file) judgeReads() []string {
	if f.test || !fits(f.dir, careful) || fits(f.dir, exempt) {
		return nil
	}
	wrong := f.uses(openers, "may follow a link that an agent made: "+
		"use internal/hostfs, or give the reason in archtest.readers")
	return excuse(wrong, readers, f.path, "no longer opens files directly: remove it from archtest.readers")
}
