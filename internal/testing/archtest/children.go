package archtest

import (
	"fmt"
	"go/ast"
)

// starters start another program with all of the environment, keys included.
const starters = "exec.Command exec.CommandContext os.StartProcess syscall.Exec syscall.ForkExec unix.Exec"

// parents may use starters all the same, each for its reason.
var parents = map[string]string{
	"internal/proc/run.go": "takes the secrets out",

	"cmd/abl-cmd/internal/commands/commands.go": "inside a role's or the app's container, which has no secret of abl's",
	"cmd/abl-cmd/run.go":                        "inside a container",
	"internal/broker/program.go":                "inside the app's container",
	"roles/agent/player.go":                     "inside the role's container",
}

// judgeChildren says where a program is started with the secrets of the
// environment. Tests and what they alone use start what they like.
func (f file) judgeChildren() []string {
	if f.test || fits(f.dir, support) {
		return nil
	}
	var wrong []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if name := selected(n); name != "" && fits(name, starters) {
			wrong = append(wrong, f.at(n.Pos())+": "+name+" gives abl's secrets to another program; use internal/proc")
		}
		return true
	})
	_, allowed := parents[f.path]
	switch {
	case !allowed:
		return wrong
	case len(wrong) == 0:
		return []string{fmt.Sprintf("%s starts nothing by itself any more: take it out of archtest's parents", f.path)}
	}
	return nil
}

// selected is a node as PACKAGE.Name, "" when it is no such thing.
func selected(n ast.Node) string {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	pkg, ok := sel.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return pkg.Name + "." + sel.Sel.Name
}
