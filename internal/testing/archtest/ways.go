package archtest

import "go/ast"

// speaking are the packages that show something to people. What they show goes
// through cli.Input, which makes it safe.
const speaking = "cmd/abl cmd/code-commit cmd/internal/..."

// mouths are ways past it.
const mouths = "os.Stdout os.Stderr fmt.Print fmt.Printf fmt.Println log.Print log.Printf log.Println log.Fatal log.Fatalf json.NewEncoder"

// beginning is where the process and its outputs begin.
const beginning = "cmd/abl/main.go cmd/code-commit/main.go"

// speakers may use a mouth or cli.Input's Bare all the same, each for its reason.
var speakers = map[string]string{
	"cmd/internal/cli/input.go":    "makes safe",
	"cmd/internal/cli/main.go":     "asks for the name of standard output",
	"cmd/abl/phase.go":             "the view makes safe what it shows",
	"cmd/internal/phase/beside.go": "the terminal of a person who is in the container themselves",
	"cmd/abl/logs.go":              "prints with a prefix, made safe",
	"cmd/internal/learn/repl.go":   "the prompt that a person types behind, and clearing their screen",

	"cmd/internal/commit/session.go": "the build's output, with a prefix, made safe; asks whether the output takes colours",
	"cmd/abl/open.go":                "asks whether the output takes colours",
	"cmd/abl/status.go":              "asks whether the output is a screen",
}

// judgeWays says where something gets out as it is.
func (f file) judgeWays() []string {
	if f.test || !fits(f.dir, speaking) || fits(f.path, beginning) {
		return nil
	}
	var wrong []string
	ast.Inspect(f.ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if name := selected(n); name != "" && fits(name, mouths) {
			wrong = append(wrong, f.at(n.Pos())+": "+name+" shows what nobody made safe; use cli.Input")
		} else if sel.Sel.Name == "Bare" {
			wrong = append(wrong, f.at(n.Pos())+": Bare shows what nobody made safe; use cli.Input")
		}
		return true
	})
	return excuse(wrong, speakers, f.path, "speaks past nobody any more: take it out of archtest's speakers")
}

// excuse lets a file do what is wrong elsewhere when it is among those that may,
// and names one that is there for nothing.
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
