package view

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"abl/internal/state"
)

// kinds are the event kinds as their source declares them.
func kinds(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../internal/state/event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == "Kind" {
			for _, v := range spec.Values {
				if s, err := strconv.Unquote(v.(*ast.BasicLit).Value); err == nil {
					all = append(all, s)
				}
			}
		}
		return true
	})
	if len(all) == 0 {
		t.Fatal("kinds in the source: got none, want some")
	}
	return all
}

// fields are the names of an event's JSON fields.
func fields() []string {
	var all []string
	for i := range reflect.TypeFor[state.Event]().NumField() {
		tag, _, _ := strings.Cut(reflect.TypeFor[state.Event]().Field(i).Tag.Get("json"), ",")
		all = append(all, tag)
	}
	return all
}

// docs/events.md has a row for every kind and every field, and no other.
func TestEventsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(page), "## Kinds")
	kindPart, fieldPart, ok2 := strings.Cut(after, "## Fields")
	if !ok || !ok2 {
		t.Fatalf("sections of docs/events.md: got Kinds %t, Fields %t, want both", ok, ok2)
	}
	compare(t, "kind", rows(kindPart), kinds(t))
	compare(t, "field", rows(fieldPart), fields())
}

func rows(part string) []string {
	var names []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(part, -1) {
		names = append(names, m[1])
	}
	return names
}

func compare(t *testing.T, what string, documented, real []string) {
	t.Helper()
	slices.Sort(documented)
	slices.Sort(real)
	if !slices.Equal(documented, real) {
		t.Errorf("%ss in docs/events.md: got %v\nwant %v", what, documented, real)
	}
}
