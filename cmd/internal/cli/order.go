package cli

import (
	"slices"
	"strings"
)

// order puts the flags of a line where the library looks for them: behind the name of the
// command and before its arguments. What stands with a call for help is left out. path
// are the names on the way to the command.
func order(app *App, words []string) (at *Command, path, ordered []string) {
	at = app.root()
	var flags, args, lacking []string
	help := false
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch name, isFlag := flagName(word); {
		case word == "--":
			args = append(args, words[i+1:]...)
			i = len(words)
		case isFlag:
			help = help || name == "help" || name == "h"
			if f := at.flagOf(app, name); f == nil {
				ordered = append(ordered, word) // where it stands, it is unknown
			} else if f.Value == "" || strings.Contains(word, "=") {
				flags = append(flags, word)
			} else if i+1 == len(words) || at.isFlag(app, words[i+1]) {
				lacking = []string{word}
			} else {
				flags = append(flags, word, words[i+1])
				i++
			}
		case len(path) == 0 && len(args) == 0 && word == "help":
			help = true
		case len(args) == 0 && find(at.Subs, word) != nil:
			at = find(at.Subs, word)
			path, ordered = append(path, at.Name), append(ordered, at.Name)
		default:
			args = append(args, word)
		}
	}
	switch {
	case help && (at.Run != nil || len(args) == 0):
		return at, path, append(slices.Clone(path), "--help")
	case len(args) == 0 || len(lacking) > 0: // what lacks its value stands last, where the library says so
		return at, path, slices.Concat(ordered, flags, lacking)
	}
	return at, path, slices.Concat(ordered, flags, []string{"--"}, args)
}

// isFlag says that a word is a flag of this command rather than a value.
func (c *Command) isFlag(app *App, word string) bool {
	name, is := flagName(word)
	return word == "--" || is && (name == "help" || c.flagOf(app, name) != nil)
}

// flagName is the name of a flag without dashes and value: "-" and negative numbers are
// arguments.
func flagName(word string) (name string, is bool) {
	if len(word) < 2 || word[0] != '-' || word[1] >= '0' && word[1] <= '9' {
		return "", false
	}
	name, _, _ = strings.Cut(strings.TrimLeft(word, "-"), "=")
	return name, true
}

// flag is the command's flag of that name or letter.
func (c *Command) flag(name string) *Flag {
	i := slices.IndexFunc(c.Flags, func(f Flag) bool { return f.Name == name || f.Short == name })
	if i < 0 {
		return nil
	}
	return &c.Flags[i]
}

// flagOf is the command's, or one of every command.
func (c *Command) flagOf(app *App, name string) *Flag {
	if f := c.flag(name); f != nil {
		return f
	}
	return (&Command{Flags: app.Flags}).flag(name)
}
