package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"abl/cmd/internal/commit"
	"abl/orchestrator/codecommit"
)

// The page names every exit code with its meaning, and every flag.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/code-commit.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	for _, e := range commit.Codes() {
		if row := fmt.Sprintf("| %d | %s |", e.Code, e.Meaning); !strings.Contains(page, row) {
			t.Errorf("docs/code-commit.md: got no row %s, want one", row)
		}
	}
	for _, f := range commit.Command("").Flags {
		if f.Name != "ca-cert" && f.Name != "offline" && !strings.Contains(page, "--"+f.Name) {
			t.Errorf("docs/code-commit.md: got no flag --%s, want it", f.Name)
		}
	}
}

// docs/json.md names every key of a result.
func TestJSONDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	n, code, files := int64(1), 1, []codecommit.Edit{{Path: "a", Delete: true}}
	for head, v := range map[string]any{
		"abl code-commit --json": codecommit.Result{
			Protocol: "v2", Why: "x", Report: "x", Missing: []string{"x"}, Files: files,
			Attempts: []*codecommit.Attempt{{Why: "x", Says: "x", Model: "m", Finish: "whole", BuildMS: 1, Exit: &code, Input: &n, Output: &n, Total: &n, Files: files, Notes: []string{"x"}}},
		},
	} {
		_, section, _ := strings.Cut(string(page), "## `"+head+"`")
		section, _, _ = strings.Cut(section, "\n## ")
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var doc any
		if err := json.Unmarshal(data, &doc); err != nil {
			t.Fatal(err)
		}
		keys(doc, "", func(key string) {
			short := key[max(0, strings.LastIndex(key, ".")):] // as in a line of several keys
			if !strings.Contains(section, "`"+key+"`") && !strings.Contains(section, "`"+short+"`") &&
				!strings.HasPrefix(key, "files[].") {
				t.Errorf("%s in docs/json.md: got no key %s, want it", head, key)
			}
		})
	}
}

// keys visits the keys of a document as the page spells them.
func keys(v any, at string, visit func(string)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			keys(e, at+"[]", visit)
		}
	case map[string]any:
		for key, e := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			visit(path)
			keys(e, path, visit)
		}
	}
}
