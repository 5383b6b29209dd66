package cli

import (
	"abl/internal/nearest"
	"strings"
)

// line is a command line taken apart: the way to the command, its flags in the
// one form that the flag library reads wherever they stood, and the arguments.
type line struct {
	path    []*Command
	global  []string // --name or --name=value, flags of every command
	flags   []string // likewise, flags of the command
	args    []string
	help    bool
	version bool
	wants   *Flag // the flag at the very end whose value is missing
	literal bool  // after --: what follows is no flag
}

// command is the one that the line ends at; nil is the program itself.
func (l *line) command() *Command {
	if len(l.path) == 0 {
		return nil
	}
	return l.path[len(l.path)-1]
}

// name is the way to the command in words.
func (l *line) name() string {
	var words []string
	for _, c := range l.path {
		if c.Name != "" {
			words = append(words, c.Name)
		}
	}
	return strings.Join(words, " ")
}

// parser takes a command line apart word by word.
type parser struct {
	line
	app  *App
	rest []string
}

// parse takes words apart. What it returns with an error is as far as it came.
func parse(app *App, words []string) (*line, error) {
	p := &parser{app: app, rest: words}
	if app.Root != nil {
		p.path = append(p.path, app.Root)
	}
	for len(p.rest) > 0 {
		word := p.rest[0]
		p.rest = p.rest[1:]
		if err := p.take(word); err != nil {
			return &p.line, err
		}
	}
	return &p.line, nil
}

func (p *parser) take(word string) error {
	switch {
	case p.literal || !looksLikeFlag(word):
		return p.word(word)
	case word == "--":
		p.literal = true
		return nil
	case word == "--help" || word == "-h":
		p.help = true
		return nil
	case word == "--version" && p.name() == "":
		p.version = true
		return nil
	case p.help:
		return nil
	case strings.HasPrefix(word, "--"):
		return p.long(word)
	}
	return p.short(word)
}

// looksLikeFlag tells flags from arguments: "-" and negative numbers are arguments.
func looksLikeFlag(word string) bool {
	return len(word) > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9')
}

// word takes a command's name or an argument.
func (p *parser) word(word string) error {
	at, subs := p.command(), p.app.Commands
	if at != nil {
		subs = at.Subs
	}
	if c := find(subs, word); c != nil && len(p.args) == 0 {
		p.path = append(p.path, c)
		return nil
	}
	switch {
	case p.name() == "" && len(p.args) == 0 && word == "help":
		p.help = true
	case at == nil || at.Run == nil:
		return p.unknownCommand(word, subs)
	default:
		p.args = append(p.args, word)
	}
	return nil
}

func (p *parser) unknownCommand(word string, subs []Command) error {
	full := strings.TrimSpace(p.name() + " " + word)
	if near := nearest.Word(word, names(subs)); near != "" {
		return WithHint("did you mean \""+strings.TrimSpace(p.name()+" "+near)+"\"?", "unknown command %q", full)
	}
	return WithHint("", "unknown command %q", full)
}

// names are those that may be suggested: of all that are not hidden.
func names(commands []Command) []string {
	var all []string
	for _, c := range commands {
		if !c.Hidden {
			all = append(all, c.Name)
		}
	}
	return all
}
