package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
)

// maxLines is the largest size of a file.
const maxLines = 500

// judgeStyle returns the violations of one file, except those in its imports.
func (f file) judgeStyle() []string {
	var wrong []string
	if f.lines > maxLines {
		wrong = append(wrong, fmt.Sprintf("%s has %d lines, more than %d", f.path, f.lines, maxLines))
	}
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			wrong = append(wrong, f.at(fn.Pos())+": init() runs before main can refuse; call it")
		}
	}
	if f.test || fits(f.dir, "cmd/...") {
		return wrong
	}
	return append(wrong, f.uses("context.Background context.TODO", "cannot be cancelled; take the caller's")...)
}

func (f file) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(pos).Line)
}
