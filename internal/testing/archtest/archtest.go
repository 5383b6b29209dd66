// Package archtest checks the imports between the packages of this module and a few rules for
// readable code. It reads the sources and does not ask the go command: the result of a test that
// asks is cached even after a bad import, because none of the test's own inputs have changed.
package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// file is one parsed source file.
type file struct {
	path  string
	dir   string // the package, "." for the module's root
	test  bool
	lines int
	set   *token.FileSet
	ast   *ast.File
}

// Check reads the module in fsys and returns its violations of the rules, sorted.
func Check(fsys fs.FS, module string) ([]string, error) {
	files, err := parse(fsys)
	if err != nil {
		return nil, err
	}
	var wrong []string
	for _, f := range files {
		for _, imp := range f.ast.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return nil, err
			}
			wrong = append(wrong, f.judgeImport(module, name)...)
		}
		wrong = append(wrong, f.judgeStyle()...)
		wrong = append(wrong, f.judgeReads()...)
		wrong = append(wrong, f.judgeStarts()...)
		wrong = append(wrong, f.judgeOutputs()...)
	}
	wrong = append(wrong, withoutComment(files)...)
	slices.Sort(wrong)
	return slices.Compact(wrong), nil
}

// parse reads every Go file that the go command would build.
func parse(fsys fs.FS) ([]file, error) {
	var files []file
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(fsys, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		f, err := parseFile(fsys, name)
		files = append(files, f)
		return err
	})
	return files, err
}

// ignored reports whether the go command skips a folder. It also skips other modules.
func ignored(fsys fs.FS, dir string) bool {
	base := path.Base(dir)
	_, err := fs.Stat(fsys, dir+"/go.mod")
	return err == nil || base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_'
}

func parseFile(fsys fs.FS, name string) (file, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return file{}, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, fmt.Errorf("cannot parse: %w", err)
	}
	return file{
		path:  name,
		dir:   path.Dir(name),
		test:  strings.HasSuffix(name, "_test.go"),
		lines: bytes.Count(src, []byte("\n")),
		set:   set,
		ast:   tree,
	}, nil
}

// judgeImport returns the violation of one import, if there is one.
func (f file) judgeImport(module, name string) []string {
	own, isOwn := strings.CutPrefix(name, module+"/")
	switch {
	case name == module:
		own, isOwn = ".", true
	case !isOwn && !strings.Contains(strings.Split(name, "/")[0], "."):
		return nil // the standard library
	}
	if isOwn && f.mayImport(own) || !isOwn && f.mayUse(name) {
		return nil
	}
	if isOwn {
		name = own
	}
	return []string{fmt.Sprintf("%s may not import %s (%s)", f.dir, name, f.path)}
}

// withoutComment lists the packages without a package comment.
func withoutComment(files []file) []string {
	documented := map[string]bool{}
	for _, f := range files {
		if !f.test {
			documented[f.dir] = documented[f.dir] || f.ast.Doc != nil
		}
	}
	var wrong []string
	for dir, ok := range documented {
		if !ok {
			wrong = append(wrong, dir+" has no package comment")
		}
	}
	return wrong
}
