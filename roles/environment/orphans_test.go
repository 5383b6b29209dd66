package environment

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"abl/internal/sandbox"
	"abl/internal/state"
)

func TestOrphans(t *testing.T) {
	by := time.Unix(1_000_000, 0)
	object := func(key string, change ...func(*sandbox.Object)) sandbox.Object {
		o := sandbox.Object{Name: sandbox.Name("a", key), Labels: map[string]string{
			sandbox.LabelProject: "a", sandbox.LabelState: "here", sandbox.LabelDeadline: strconv.FormatInt(by.Unix()-1, 10),
		}}
		for _, do := range change {
			do(&o)
		}
		return o
	}
	label := func(name, value string) func(*sandbox.Object) {
		return func(o *sandbox.Object) { o.Labels[name] = value }
	}
	for name, c := range map[string]struct {
		second sandbox.Object
		lost   bool
		want   []string
	}{
		"lost":                       {object("x"), true, []string{"a"}},
		"not lost":                   {object("x"), false, nil},
		"runs":                       {object("x", func(o *sandbox.Object) { o.Running = true }), true, nil},
		"deadline has just passed":   {object("x", label(sandbox.LabelDeadline, "1000000")), true, nil},
		"no deadline":                {object("x", label(sandbox.LabelDeadline, "")), true, nil},
		"another state file":         {object("x", label(sandbox.LabelState, "there")), true, nil},
		"without a state file":       {object("x", label(sandbox.LabelState, "")), true, nil},
		"another program's, it runs": {object("x", func(o *sandbox.Object) { o.Name, o.Running = "their-x", true }), true, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := []sandbox.Object{object("net"), c.second}
			var got []string
			for _, p := range projects(all, by, func(label, id string) bool { return c.lost && label == "here" && id == "a" }) {
				if p.orphan() {
					got = append(got, p.ID)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("orphans: got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLost(t *testing.T) {
	here := t.TempDir()
	begun := state.New(here)
	saved := func(name string, data []byte) string {
		path := filepath.Join(here, name, state.Dir, "state.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	valid := saved("valid", nil)
	if err := state.Save(valid, begun); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(here, "cleaned"), 0o755); err != nil {
		t.Fatal(err)
	}
	other := state.New(here).Project
	for name, c := range map[string]struct {
		label, id string
		want      bool
	}{
		"has the id":             {pathLabel(valid), begun.Project, false},
		"another id":             {pathLabel(valid), other, true},
		"damaged":                {pathLabel(saved("damaged", []byte("{"))), other, false},
		"a state of abl learn":   {pathLabel(saved("learned", []byte(`{"version": 1, "id": "learn-0123456789"}`))), other, false},
		"no .abl":                {pathLabel(filepath.Join(here, "cleaned/.abl/state.json")), other, true},
		"no directory":           {pathLabel(filepath.Join(here, "moved/.abl/state.json")), other, false},
		"another machine":        {"elsewhere.invalid:" + valid, other, false},
		"no label":               {"", other, false},
		"not an absolute path":   {pathLabel("valid/.abl/state.json"), other, false},
		"path that is not UTF-8": {pathLabel("/\xff/.abl/state.json"), other, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lost(c.label, c.id); got != c.want {
				t.Errorf("lost(%q): got %t, want %t", c.label, got, c.want)
			}
		})
	}
}
