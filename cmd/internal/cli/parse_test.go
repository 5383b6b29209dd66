package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// canonical is a line as words, in the one form that the flag library gets.
func (l *line) canonical() []string {
	words := slices.Clone(l.global)
	for _, c := range l.path {
		words = append(words, c.Name)
	}
	return append(append(append(words, l.flags...), "--"), l.args...)
}

// Whatever is typed, the canonical form of it means the same and is its own.
func FuzzParse(f *testing.F) {
	for _, typed := range []string{
		"phase 3 --json", "phase -qn7 3", "phase -n=7 -- --json", "images save f --force", "--progress plain p PHASE=3",
		"phase --with a=b --with=c", "help phase", "phase -1 -", "images path x build", "phase --agent", "phase -é",
	} {
		f.Add(typed)
	}
	run := func(context.Context, *Input) error { return nil }
	app := &App{
		Name:  "abl",
		Flags: []Flag{{Name: "progress", Value: "HOW", Values: []string{"plain", "tty"}}, {Name: "quiet", Short: "q"}},
		Commands: []Command{
			{Name: "phase", Aliases: []string{"p"}, MaxArgs: 1, Run: run, Flags: []Flag{{Name: "json"}, {Name: "iterations", Short: "n", Value: "N"}, {Name: "with", Value: "V", Multi: true}}},
			{Name: "images", Run: run, MaxArgs: -1, Subs: []Command{{Name: "build", Run: run}, {Name: "save", Run: run, MaxArgs: 1, Flags: []Flag{{Name: "force"}}}}},
		},
	}
	f.Fuzz(func(t *testing.T, typed string) {
		complete(app, strings.Split(typed, " "))
		l, err := parse(app, strings.Fields(typed))
		if err != nil || l.help || l.version {
			return
		}
		again, err := parse(app, l.canonical())
		if err != nil {
			t.Fatalf("%q: its canonical form %q: %v", typed, l.canonical(), err)
		}
		if !slices.Equal(again.canonical(), l.canonical()) {
			t.Errorf("%q: %q became %q", typed, l.canonical(), again.canonical())
		}
	})
}
