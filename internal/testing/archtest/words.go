package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// dialect matches phrases that this project never uses. Each has a plain replacement, such as
// "is invalid" for the first and "again" for the second. The brackets keep tools that search for the
// phrases from finding them here.
var dialect = regexp.MustCompile(`(?i)\b(?:(?:is|are|was|were|be|that's)\s+none|[a]new|` +
	`(?:is|are|was|were|been|be|nobody)\s+told|the\s+person(?:'s|’s)?|[s]omebody|[l]est|[m]end(?:s|ed|ing)?|` +
	`go(?:es)?\s+on\s+from|came\s+of\s+it|made\s+over\s+to|in\s+the\s+place\s+of|knows?\s+no|` +
	`by\s+(?:it|them)sel(?:f|ves)|[o]der|[d]anach|[s]onst|[k]eine?)\b|\bof\s+its\s+own\.|(?:^|[^.a-z])[b]esides\b`) // ".[b]esides" is a class in JUnit files

// Names that say nothing to a reader who has not seen the code: vague is refused for functions,
// methods and types, riddles for every declared name.
const (
	vague   = "Still marked held keep take words stand stands standing settle"
	riddles = "sixth hops fallen thoseThat wentOn papers misfit cameTo came remark telling teller told " +
		"aim deaf colon surround pour hollow box boxes"
)

// prose lists the files whose text is read, by the end of their names.
var prose = strings.Fields(".go .md .yaml .yml .sh .js .mjs Makefile Dockerfile .ci/run")

// commentMark is the start of a comment line. Without it, a phrase that continues in the next line
// is found too.
var commentMark = regexp.MustCompile(`(?m)^[ \t]*(?://|#+)`)

// Words reads the texts and names of the module in fsys. It returns the phrases and names to
// replace, as PLACE:LINE: TEXT, for each directory that has some.
func Words(fsys fs.FS) (map[string][]string, error) {
	found := map[string][]string{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && fits(name, ".git bin internal/testing/archtest"): // this package quotes them
			return fs.SkipDir
		case d.IsDir() || !readable(name):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		dir, _, _ := strings.Cut(path.Dir(name), "/testdata")
		found[dir] = append(found[dir], phrases(name, text)...)
		if path.Ext(name) != ".go" || strings.Contains(name, "/testdata/") {
			return nil
		}
		f, err := parseFile(fsys, name)
		if err == nil {
			found[dir] = append(found[dir], f.names()...)
		}
		return err
	})
	for dir, places := range found {
		if len(places) == 0 {
			delete(found, dir)
		}
	}
	return found, err
}

// readable reports whether a file has text of this project. In testdata only programs and scripts
// have; the rest is input.
func readable(name string) bool {
	if name == "CHANGELOG.md" { // quotes older versions
		return false
	}
	if strings.Contains(name, "/testdata/") {
		return strings.Contains(name, "/testdata/script/") || strings.Contains(name, "/testdata/engine/") ||
			fits(path.Ext(name), ".go .sh .mjs")
	}
	return fits(path.Dir(name), ".abl-template/... prompts") ||
		slices.ContainsFunc(prose, func(end string) bool { return strings.HasSuffix(name, end) })
}

// phrases returns the phrases of dialect in a text.
func phrases(name string, text []byte) []string {
	var found []string
	text = commentMark.ReplaceAll(text, nil)
	for _, at := range dialect.FindAllIndex(text, -1) {
		line := bytes.Count(text[:at[0]], []byte("\n")) + 1
		phrase := strings.Join(strings.Fields(string(text[at[0]:at[1]])), " ")
		found = append(found, fmt.Sprintf("%s:%d: replace %q", name, line, phrase))
	}
	return found
}

// names returns the declared names of a file that say nothing.
func (f file) names() []string {
	var found []string
	refuse := func(list string, names ...*ast.Ident) {
		for _, id := range names {
			if fits(id.Name, list) {
				found = append(found, fmt.Sprintf("%s: rename %s", f.at(id.Pos()), id.Name))
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			refuse(vague+" "+riddles, n.Name)
		case *ast.TypeSpec:
			refuse(vague+" "+riddles, n.Name)
		case *ast.Field:
			refuse(riddles, n.Names...)
		case *ast.ValueSpec:
			refuse(riddles, n.Names...)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				if id, ok := left.(*ast.Ident); ok && n.Tok == token.DEFINE {
					refuse(riddles, id)
				}
			}
		}
		return true
	})
	return found
}
