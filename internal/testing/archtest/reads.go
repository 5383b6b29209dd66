package archtest

import "go/ast"

// careful are the packages that handle what agents wrote. In them a file is
// opened through internal/hostfs, which follows no link, waits for nobody and
// opens regular files alone.
const (
	careful = "roles/... orchestrator/... cmd/abl cmd/internal/... internal/..."
	spared  = "internal/hostfs internal/testing/..." // what is careful for all, and what is in no program
)

// openers are what opens or follows a path otherwise.
const openers = "os.Open os.OpenFile os.ReadFile os.ReadDir os.Readlink os.OpenRoot os.OpenInRoot os.DirFS os.CopyFS " +
	"os.WriteFile os.Create os.CreateTemp " +
	"filepath.Walk filepath.WalkDir filepath.Glob " +
	"unix.Open unix.Openat unix.Openat2 unix.Readlinkat syscall.Open"

// readers may use openers all the same, each for its reason: neither a role nor a repository can
// have made what they open, or a link on the way to it.
var readers = map[string]string{
	"cmd/abl/debug.go":               "a file that the person names",
	"cmd/abl/images.go":              "an archive that the person names",
	"cmd/abl/init.go":                "the project at its beginning, and the demo's empty directory",
	"cmd/internal/commit/command.go": "the project at its beginning",
	"cmd/abl/tell.go":                "a file that the person's CI names",
	"cmd/internal/learn/command.go":  "a file that the person names",
	"orchestrator/learner/home.go":   "lists the project's folder, which no container sees; copies below open folders, and follows nothing",
	"roles/agent/player.go":          "inside the role's container",
	"roles/deps.go":                  "a copy that abl made, below an os.Root, after its container has ended",
	"roles/export.go":                "lists abl's own cache by name, which no role can write",

	"orchestrator/codecommit/apply.go":   "moves files of the person's tree below an os.Root, after every path was judged",
	"orchestrator/codecommit/project.go": "lists the folders of the logs by name",

	"internal/broker/apprun.go":   "inside a container, below an os.Root",
	"internal/broker/record.go":   "inside the app's container",
	"internal/cacerts/cacerts.go": "a file that the person names",
	"internal/helper/wire.go":     "inside a container, what abl laid there",
	"internal/broker/ports.go":    "the kernel's files",
	"internal/proc/list_linux.go": "the kernel's files",
	"internal/spec/dir.go":        "specs, which no role can write",

	"internal/sandbox/docker/connect.go": "the person's settings of their engine",

	"internal/git/repo.go":       "lists .git by name, and enters no link",
	"internal/git/checkout.go":   "writes below an os.Root, into folders that it looked at",
	"internal/git/export.go":     "writes below an os.Root, into a directory that abl has just made",
	"internal/git/torn.go":       "writes below an os.Root, files that it looked at",
	"internal/git/gitdir/dir.go": ".git",
	"internal/git/scan/scan.go":  "the walk itself, which hostfs is too slow for: by name from an open folder, no link followed",
}

// judgeReads says where a careful package opens a path by itself, and which of
// the readers no longer does.
func (f file) judgeReads() []string {
	if f.test || !fits(f.dir, careful) || fits(f.dir, spared) {
		return nil
	}
	var wrong []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && fits(pkg.Name+"."+sel.Sel.Name, openers) {
			wrong = append(wrong, f.at(n.Pos())+": "+pkg.Name+"."+sel.Sel.Name+" follows what an agent may have put there: use internal/hostfs, or give the reason in archtest's readers")
		}
		return true
	})
	return excuse(wrong, readers, f.path, "opens nothing by itself any more: take it out of archtest's readers")
}
