package cli

import (
	"abl/internal/nearest"
	"slices"
	"strings"
	"unicode/utf8"
)

// long takes --name, --name=value or --name value.
func (p *parser) long(word string) error {
	name, value, has := strings.Cut(word[2:], "=")
	f, global := p.flag(func(f Flag) bool { return f.Name == name })
	if f == nil {
		return p.unknownFlag("--" + name)
	}
	return p.give(f, global, "--"+name, value, has)
}

// short takes -f, -f value, -fvalue and several yes-or-no letters in one word.
func (p *parser) short(word string) error {
	letters := word[1:]
	for letters != "" {
		_, size := utf8.DecodeRuneInString(letters)
		letter := letters[:size]
		letters = letters[size:]
		f, global := p.flag(func(f Flag) bool { return f.Short == letter })
		if f == nil {
			if p.known(word[1:]) {
				return WithHint("did you mean -"+word+"?", "unknown flag %q", word)
			}
			return p.unknownFlag("-" + letter)
		}
		if f.Value != "" && letters != "" {
			return p.give(f, global, "-"+letter, strings.TrimPrefix(letters, "="), true)
		}
		if err := p.give(f, global, "-"+letter, "", false); err != nil {
			return err
		}
	}
	return nil
}

// flag finds a flag of the command at hand, else one of every command.
func (p *parser) flag(is func(Flag) bool) (f *Flag, global bool) {
	if c := p.command(); c != nil {
		if i := slices.IndexFunc(c.Flags, is); i >= 0 {
			return &c.Flags[i], false
		}
	}
	if i := slices.IndexFunc(p.app.Flags, is); i >= 0 {
		return &p.app.Flags[i], true
	}
	return nil, false
}

func (p *parser) known(name string) bool {
	name, _, _ = strings.Cut(name, "=")
	f, _ := p.flag(func(f Flag) bool { return f.Name == name })
	return f != nil
}

// give enters a flag with its value, which may still be the next word.
func (p *parser) give(f *Flag, global bool, as, value string, has bool) error {
	canon := "--" + f.Name
	if f.Value != "" && !has {
		if len(p.rest) == 0 || p.isFlag(p.rest[0]) {
			if len(p.rest) == 0 {
				p.wants = f
			}
			return Usagef("%s needs a value: %s", as, f.Value)
		}
		value, has = p.rest[0], true
		p.rest = p.rest[1:]
	}
	if has {
		if err := allowed(f, as, value); err != nil {
			return err
		}
		canon += "=" + value
	}
	if global {
		p.global = append(p.global, canon)
	} else {
		p.flags = append(p.flags, canon)
	}
	return nil
}

// isFlag says that a word is a flag of this command rather than a value.
func (p *parser) isFlag(word string) bool {
	if word == "--" || word == "--help" {
		return true
	}
	f, _ := p.flag(func(f Flag) bool { return word == "--"+f.Name || f.Short != "" && word == "-"+f.Short })
	return f != nil
}

// allowed checks a value that a flag is given.
func allowed(f *Flag, as, value string) error {
	if f.Value == "" && value != "true" && value != "false" {
		return Usagef("%s is on or off: it takes true or false, not %q", as, value)
	}
	if len(f.Values) > 0 && !f.Open && !slices.Contains(f.Values, value) {
		sentence := "%s must be " + oneOf(f.Values) + ", not %q"
		if near := nearest.Word(value, f.Values); near != "" {
			return WithHint("did you mean "+as+" "+near+"?", sentence, as, value)
		}
		return Usagef(sentence, as, value)
	}
	return nil
}

// oneOf lists words: a, b or c.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// unknownFlag looks for the flag that was meant: of this command, else of a
// command that should have come first.
func (p *parser) unknownFlag(as string) error {
	where := ""
	if p.name() != "" {
		where = " of " + p.app.Name + " " + p.name()
	}
	sentence := "unknown flag %q" + where
	known := []string{"--help"}
	for _, f := range p.app.Flags {
		known = append(known, "--"+f.Name)
	}
	if c := p.command(); c != nil {
		for _, f := range c.Flags {
			known = append(known, "--"+f.Name)
		}
	} else if c := owner(p.app.Commands, as); c != nil {
		return WithHint("put it behind the command: "+p.app.Name+" "+c.Name+" "+as, sentence, as)
	}
	if near := nearest.Word(as, known); near != "" {
		return WithHint("did you mean "+near+"?", sentence, as)
	}
	return Usagef(sentence, as)
}

// owner is the first command that has the flag.
func owner(commands []Command, as string) *Command {
	for i, c := range commands {
		if !c.Hidden && slices.ContainsFunc(c.Flags, func(f Flag) bool { return as == "--"+f.Name }) {
			return &commands[i]
		}
	}
	return nil
}
