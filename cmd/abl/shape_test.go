package main

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

const jsonPage = "../../docs/json.md"

// fits NAME checks that stdout is one JSON document with no keys but those
// that docs/json.md lists for NAME.
func fitsShape(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fits NAME")
	}
	page, err := os.ReadFile(jsonPage)
	ts.Check(err)
	want, ok := documents(string(page))[args[0]]
	if !ok {
		ts.Fatalf("docs/json.md does not speak of %q", args[0])
	}
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var doc any
	ts.Check(d.Decode(&doc))
	if d.More() {
		ts.Fatalf("there is more than one document")
	}
	got := map[string]bool{}
	keysOf(doc, "", got)
	for key := range got {
		if !slices.ContainsFunc(want, func(k string) bool { return covers(k, key) }) {
			ts.Fatalf("docs/json.md lacks the key %s of %s", key, args[0])
		}
	}
}

// covers says whether a documented key, which may have a * for any name, is
// that of a document.
func covers(documented, key string) bool {
	steps := strings.NewReplacer("[]", "/-", ".", "/")
	ok, err := path.Match(steps.Replace(documented), steps.Replace(key))
	return ok && err == nil
}

// documents returns the keys that the page lists below each heading. A line may have several keys:
// one that begins with a dot is in the object of the key before it.
func documents(page string) map[string][]string {
	all := map[string][]string{}
	name := ""
	for line := range strings.Lines(page) {
		if head, ok := strings.CutPrefix(line, "## "); ok {
			name = strings.Trim(strings.TrimSpace(head), "`")
			all[name] = nil
			continue
		}
		if !strings.HasPrefix(line, "- `") {
			continue
		}
		cell, _, _ := strings.Cut(line, "`: ")
		object := ""
		for _, m := range keyName.FindAllStringSubmatch(cell, -1) {
			key := m[1]
			if strings.HasPrefix(key, ".") {
				key = object + key
			}
			object = key[:max(0, strings.LastIndex(key, "."))]
			all[name] = append(all[name], key)
		}
	}
	return all
}

var keyName = regexp.MustCompile("`([^`]+)(?:`|$)")

// keysOf collects the keys of a document: a.b is b in the object a, a[].b in
// each object of the list a.
func keysOf(v any, at string, into map[string]bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			keysOf(e, at+"[]", into)
		}
	case map[string]any:
		for key, e := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			into[path] = true
			keysOf(e, path, into)
		}
	}
}

// Every key that the page promises is in snake case.
func TestKeysAreSnakeCase(t *testing.T) {
	page, err := os.ReadFile(jsonPage)
	if err != nil {
		t.Fatal(err)
	}
	key := regexp.MustCompile(`^(\[\]\.)?[a-z][a-z0-9_]*((\[\])?\.([a-z][a-z0-9_]*|\*))*$`)
	docs := documents(string(page))
	for name, keys := range docs {
		for _, k := range keys {
			if !key.MatchString(k) {
				t.Errorf("key of %s: got %q, want snake case", name, k)
			}
		}
	}
	if len(docs) < 7 {
		t.Errorf("documents in %s: got %d, want 7 or more", jsonPage, len(docs))
	}
}
