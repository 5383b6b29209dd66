package archtest

import "go/ast"

// commands lists the packages that print for the user. They print through cli.Input, which
// removes secrets and control characters.
const commands = "cmd/abl cmd/code-commit cmd/internal/..."

// direct lists the functions and files that bypass it.
const direct = "os.Stdout os.Stderr fmt.Print fmt.Printf fmt.Println " +
	"log.Print log.Printf log.Println log.Fatal log.Fatalf json.NewEncoder"

// mains lists the files where the process and its outputs begin.
const mains = "cmd/abl/main.go cmd/code-commit/main.go"

// printing lists the files that may bypass cli.Input, each with the reason.
var printing = map[string]string{
	"cmd/internal/cli/input.go":    "makes the output safe",
	"cmd/internal/cli/main.go":     "asks for the name of standard output",
	"cmd/abl/phase.go":             "the view makes its output safe",
	"cmd/internal/phase/beside.go": "the terminal of a user who works inside the container",
	"cmd/internal/look/logs.go":    "prints safe text with a prefix",
	"cmd/internal/learn/repl.go":   "the input prompt, and clearing the screen",

	"cmd/internal/commit/session.go": "prints safe build output with a prefix; asks whether the output supports colour",
	"cmd/internal/commit/watched.go": "draws a line of progress that it has redacted",
	"cmd/internal/look/open.go":      "asks whether the output supports colour",
	"cmd/internal/look/status.go":    "asks whether the output is a terminal",
}

// judgeOutputs returns the places that bypass cli.Input.
func (f file) judgeOutputs() []string {
	if f.test || !fits(f.dir, commands) || fits(f.path, mains) {
		return nil
	}
	wrong := f.uses(direct, "bypasses redaction; use cli.Input")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Bare" {
			wrong = append(wrong, f.at(n.Pos())+": Bare bypasses redaction; use cli.Input")
		}
		return true
	})
	return excuse(wrong, printing, f.path, "no longer bypasses cli.Input: remove it from archtest.printing")
}

// excuse drops the violations of a file that is on the list of exceptions. It reports an
// exception that is no longer needed.
func excuse(wrong []string, allowed map[string]string, path, idle string) []string {
	_, may := allowed[path]
	switch {
	case !may:
		return wrong
	case len(wrong) == 0:
		return []string{path + " " + idle}
	}
	return nil
}
