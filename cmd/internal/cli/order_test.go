package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

// Whatever is typed, its order is the order of that again, and completing it does no harm.
func FuzzOrder(f *testing.F) {
	for _, typed := range []string{
		"phase 3 --json", "phase -q -n 7 3", "phase -n=7 -- --json", "images save f --force", "--progress plain p PHASE=3",
		"help phase", "phase -1 -", "images path x build", "phase --agent", "phase -é",
	} {
		f.Add(typed)
	}
	run := func(context.Context, *Input) error { return nil }
	app := &App{
		Name:  "abl",
		Flags: []Flag{{Name: "progress", Value: "HOW", Values: []string{"plain", "tty"}}, {Name: "quiet", Short: "q"}},
		Commands: []Command{
			{Name: "phase", Aliases: []string{"p"}, MaxArgs: 1, Run: run, Flags: []Flag{{Name: "json"}, {Name: "iterations", Short: "n", Value: "N"}}},
			{Name: "images", Run: run, MaxArgs: -1, Subs: []Command{{Name: "build", Run: run}, {Name: "save", Run: run, MaxArgs: 1, Flags: []Flag{{Name: "force"}}}}},
		},
	}
	f.Fuzz(func(t *testing.T, typed string) {
		suggest(io.Discard, app, strings.Split(typed, " "))
		_, path, once := order(app, strings.Fields(typed))
		_, again, twice := order(app, once)
		if !slices.Equal(path, again) || !slices.Equal(once, twice) {
			t.Errorf("%q: %q became %q", typed, once, twice)
		}
	})
}
