package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// completeWord is how the shells' scripts ask for candidates: the words of the
// line so far follow, the last of them is the one to complete.
const completeWord = "__complete"

// suggest prints what the last of words may become, one a line, a tab before what it
// means. Bash hands --name=value over in three words, and replaces the last alone.
func suggest(w io.Writer, app *App, words []string) {
	if len(words) == 0 || words[len(words)-1] == "=" {
		words = append(words, "")
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == "=" })
	last, before := words[len(words)-1], words[:len(words)-1]
	prefix := ""
	if name, value, has := strings.Cut(last, "="); has && strings.HasPrefix(name, "--") {
		prefix, last, before = name+"=", value, append(before, name)
	}
	for _, c := range candidates(app, before, last) {
		if strings.HasPrefix(c[0], last) {
			fmt.Fprintf(w, "%s%s\t%s\n", prefix, c[0], c[1])
		}
	}
}

// candidates are the words that may stand next, each with what it means.
func candidates(app *App, before []string, last string) (all [][2]string) {
	at, path, ordered := order(app, before)
	if len(before) > 0 {
		if name, is := flagName(before[len(before)-1]); is {
			if f := at.flagOf(app, name); f != nil && f.Value != "" {
				return values(f.Values)
			}
		}
	}
	if strings.HasPrefix(last, "-") {
		all = append(all, [2]string{"--help", "show help"})
		for _, f := range slices.Concat(at.Flags, app.Flags) {
			if !f.Hidden && (len(path) > 0 || at.flag(f.Name) == nil) {
				all = append(all, [2]string{"--" + f.Name, f.Usage})
			}
		}
		return all
	}
	args := 0
	if i := slices.Index(ordered, "--"); i >= 0 {
		args = len(ordered) - i - 1
	}
	if at.MaxArgs < 0 || args < at.MaxArgs {
		all = values(at.Values)
	}
	for _, s := range at.Subs {
		if !s.Hidden && args == 0 {
			all = append(all, [2]string{s.Name, s.Usage})
		}
	}
	return all
}

func values(list []string) (all [][2]string) {
	for _, v := range list {
		all = append(all, [2]string{v, ""})
	}
	return all
}

// The scripts ask the program itself, so they never fall behind it. Where it
// has nothing to say the shells offer file names.
const (
	bashScript = `# bash completion for NAME: put this line into ~/.bashrc
#   source <(NAME completion bash)
_NAME_complete() {
  local line
  COMPREPLY=()
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <(NAME __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _NAME_complete NAME
`
	zshScript = `#compdef NAME
# zsh completion for NAME: put this line into ~/.zshrc, after compinit
#   source <(NAME completion zsh)
_NAME() {
  local line word
  local -a all
  while IFS= read -r line; do
    word=${line%%$'\t'*}
    all+=("${word//:/\\:}:${line#*$'\t'}")
  done < <(NAME __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#all} )); then
    _describe NAME all
  else
    _files
  fi
}
compdef _NAME NAME
`
	fishScript = `# fish completion for NAME: run this once
#   NAME completion fish > ~/.config/fish/completions/NAME.fish
function __NAME_complete
  set -l words (commandline -opc) (commandline -ct)
  NAME __complete $words[2..-1] 2>/dev/null
end
complete -c NAME -a '(__NAME_complete)'
`
)

// Completion is the command that prints the script of a shell.
func Completion(name string) Command {
	scripts := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	return Command{
		Name: "completion", Group: Upkeep, Usage: "print the completion script of a shell",
		Args: "bash|zsh|fish", MinArgs: 1, MaxArgs: 1, Values: []string{"bash", "zsh", "fish"},
		Long:     "The script completes commands, their flags and what these take. Load it where\nyour shell starts.",
		Examples: "source <(" + name + " completion bash)\n" + name + " completion fish > ~/.config/fish/completions/" + name + ".fish",
		Run: func(_ context.Context, in *Input) error {
			script, ok := scripts[in.Args[0]]
			if !ok {
				return Usagef("completion knows bash, zsh and fish, not %q", in.Args[0])
			}
			_, err := io.WriteString(in.Stdout, strings.ReplaceAll(script, "NAME", name))
			return err
		},
	}
}
