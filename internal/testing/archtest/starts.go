package archtest

import "go/ast"

// starters start another program with all of the environment, keys included.
const starters = "exec.Command exec.CommandContext os.StartProcess syscall.Exec syscall.ForkExec unix.Exec"

// starting lists the files that may use starters, each with the reason.
var starting = map[string]string{
	"internal/proc/run.go": "removes the secrets",

	"cmd/abl-cmd/commands.go":    "inside a role's or the app's container, which has none of abl's secrets",
	"cmd/abl-cmd/run.go":         "inside a container",
	"cmd/abl-cmd/acp.go":         "inside a container",
	"internal/broker/program.go": "inside the app's container",
	"roles/agent/player.go":      "inside the role's container",
}

// judgeStarts returns the places where a program is started with the secrets of the
// environment. Tests and their support packages may do so.
func (f file) judgeStarts() []string {
	if f.test || fits(f.dir, support) {
		return nil
	}
	wrong := f.uses(starters, "gives abl's secrets to another program; use internal/proc")
	return excuse(wrong, starting, f.path, "no longer starts programs directly: remove it from archtest.starting")
}

// uses returns the places where a file uses a function or variable of list, with the text of the
// rule.
func (f file) uses(list, rule string) []string {
	var wrong []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if name := selected(n); name != "" && fits(name, list) {
			wrong = append(wrong, f.at(n.Pos())+": "+name+" "+rule)
		}
		return true
	})
	return wrong
}

// selected returns a selector of the form PACKAGE.Name as text. For any other node it returns "".
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
