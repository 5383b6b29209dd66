package crash

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/testing/lab"
)

// places returns the names of all failpoints in the program, read from its source, so that a new
// one is tested automatically.
func places(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "testdata" || e.Name() == ".git" || e.Name() == "failpoint") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			found, err := placesIn(path)
			names = append(names, found...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func placesIn(path string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		return nil, err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		fn, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || fmt.Sprint(fn.X) != "failpoint" {
			return true
		}
		lit, ok := call.Args[0].(*ast.BasicLit)
		if !ok {
			err = fmt.Errorf("%s: a failpoint's name is not a string literal", path)
			return false
		}
		name, _ := strconv.Unquote(lit.Value)
		names = append(names, name)
		return true
	})
	return names, err
}

// visits counts a run's visits of a place. first is the number of all visits before the first one
// of this place.
type visits struct{ times, first int }

// whole holds the results of undisturbed runs, by the number of iterations.
var whole [3]struct {
	sync.Once
	print  string
	visits map[string]visits
}

// wanted returns the result of an undisturbed run of newScene.
func wanted(t *testing.T) (string, map[string]visits) {
	t.Helper()
	return wantedOf(t, shortSteps())
}

// wantedLong returns the result of an undisturbed run of newLong.
func wantedLong(t *testing.T) (string, map[string]visits) {
	t.Helper()
	return wantedOf(t, 2)
}

func wantedOf(t *testing.T, steps int) (string, map[string]visits) {
	t.Helper()
	lab.Engine(t)
	w := &whole[steps]
	w.Do(func() { t.Run("undisturbed", func(t *testing.T) { w.print, w.visits = measure(t, steps) }) })
	if w.print == "" {
		t.Fatal("result of the undisturbed run: got none, want one")
	}
	return w.print, w.visits
}

func measure(t *testing.T, steps int) (string, map[string]visits) {
	s := sceneOf(t, steps, nil)
	names := places(t)
	if out, err := s.command(strings.Join(names, "=note;")+"=note", "phase", "1").CombinedOutput(); err != nil {
		t.Fatalf("the undisturbed run: got error %v, want none: %s", err, out)
	}
	s.checkNothingLeft()
	return s.print(), s.visited()
}

// visited returns the visits of each place.
func (s *scene) visited() map[string]visits {
	s.Helper()
	data, err := os.ReadFile(filepath.Join(s.points, "visits"))
	if err != nil {
		s.Fatal(err)
	}
	met := map[string]visits{}
	for i, name := range strings.Fields(string(data)) {
		v, before := met[name]
		if !before {
			v.first = i
		}
		v.times++
		met[name] = v
	}
	return met
}

func checkSame(t testing.TB, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the result differs from that of an undisturbed run (-want +got):\n%s", diff)
	}
}
