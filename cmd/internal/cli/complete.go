package cli

import (
	"fmt"
	"io"
	"strings"
)

// completeWord is how the shells' scripts ask for candidates: the words of the
// line so far follow, the last of them is the one to complete.
const completeWord = "__complete"

// candidate is a word that may stand next, with what it means.
type candidate struct{ word, about string }

// suggest prints candidates, one a line, a tab before what they mean.
func suggest(w io.Writer, all []candidate) {
	for _, c := range all {
		fmt.Fprintf(w, "%s\t%s\n", c.word, c.about)
	}
}

// complete says what the last of words may become.
func complete(app *App, words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	words = rejoin(words)
	last := words[len(words)-1]
	l, err := parse(app, words[:len(words)-1])
	switch {
	case l.wants != nil:
		return matching(values(l.wants.Values, ""), last)
	case err != nil:
		return nil
	case l.literal:
	case strings.HasPrefix(last, "--") && strings.Contains(last, "="):
		return valuesOf(app, l, last)
	case strings.HasPrefix(last, "-"):
		return matching(flagCandidates(app, l), last)
	}
	return matching(wordCandidates(app, l), last)
}

// rejoin undoes what bash does to --name=value and NAME=value: it splits them
// at the sign. The value stays a word of its own, because bash replaces only
// that; the parser takes it in either form.
func rejoin(words []string) []string {
	var out []string
	for i, word := range words {
		switch {
		case word != "=" || i == 0:
			out = append(out, word)
		case i == len(words)-1:
			out = append(out, "")
		}
	}
	return out
}

// valuesOf completes --name=value, for shells that leave it whole.
func valuesOf(app *App, l *line, last string) []candidate {
	name, _, _ := strings.Cut(last, "=")
	p := &parser{app: app, line: *l}
	f, _ := p.flag(func(f Flag) bool { return "--"+f.Name == name })
	if f == nil {
		return nil
	}
	return matching(values(f.Values, name+"="), last)
}

func values(list []string, prefix string) []candidate {
	var all []candidate
	for _, v := range list {
		all = append(all, candidate{prefix + v, ""})
	}
	return all
}

func flagCandidates(app *App, l *line) []candidate {
	all := []candidate{{"--help", "show help"}}
	if c := l.command(); c != nil {
		for _, f := range c.Flags {
			if !f.Hidden {
				all = append(all, candidate{"--" + f.Name, f.Usage})
			}
		}
	}
	for _, f := range app.Flags {
		all = append(all, candidate{"--" + f.Name, f.Usage})
	}
	return all
}

// wordCandidates are commands, else the known arguments of a command that takes more.
func wordCandidates(app *App, l *line) []candidate {
	subs, c := app.Commands, l.command()
	var all []candidate
	if c != nil {
		subs = c.Subs
		if c.MaxArgs < 0 || len(l.args) < c.MaxArgs {
			all = values(c.Values, "")
		}
	}
	if len(l.args) > 0 {
		return all
	}
	for _, s := range subs {
		if !s.Hidden {
			all = append(all, candidate{s.Name, s.Usage})
		}
	}
	return all
}

func matching(all []candidate, prefix string) []candidate {
	var some []candidate
	for _, c := range all {
		if strings.HasPrefix(c.word, prefix) {
			some = append(some, c)
		}
	}
	return some
}
