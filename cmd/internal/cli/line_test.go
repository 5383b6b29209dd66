package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
)

// Parsing loses no argument except a request for help, and completion never panics.
func FuzzTake(f *testing.F) {
	for _, typed := range []string{
		"phase 3 --json", "phase -q -n 7 3", "phase -n=7 -- --json", "images save f --force", "--progress plain p PHASE=3",
		"help phase", "phase -1 -", "images path x build", "phase --agent", "phase -é", "phase\n--", "phase -n --",
	} {
		f.Add(typed)
	}
	run := func(context.Context, *Input) error { return nil }
	app := &App{
		Name:  "abl",
		Flags: []Flag{{Name: "progress", Value: "HOW", Values: []string{"plain", "tty"}}, {Name: "quiet", Short: "q"}},
		Commands: []Command{
			{Name: "phase", Aliases: []string{"p"}, Run: run, Flags: []Flag{{Name: "json"}, {Name: "iterations", Short: "n", Value: "N"}}},
			{Name: "images", Run: run, Subs: []Command{{Name: "build", Run: run}, {Name: "save", Run: run, Flags: []Flag{{Name: "force"}}}}},
		},
	}
	f.Fuzz(func(t *testing.T, typed string) {
		suggest(io.Discard, app, strings.Split(typed, " "))
		words := strings.Fields(typed)
		l := parse(app, words)
		again := slices.Concat(strings.Fields(l.name)[1:], l.flags, []string{"--"}, l.args)
		if twice := parse(app, again); !l.help && (twice.name != l.name || len(twice.flags)+len(twice.args) < len(l.flags)+len(l.args)) {
			t.Errorf("%q parsed again: got %+v, want %+v", typed, twice, l)
		}
		lost := len(words) - len(l.flags) - len(l.args) - (len(strings.Fields(l.name)) - 1)
		if ends := lost == 1 && slices.Contains(words, "--"); !l.help && lost != 0 && !ends {
			t.Errorf("%q: got %d of %d words lost in %+v, want none", typed, lost, len(words), l)
		}
	})
}
