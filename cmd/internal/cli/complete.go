package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// completeWord is the hidden command that the shells' scripts call for candidates, followed by the words
// of the line. The last word is the one to complete.
const completeWord = "__complete"

// suggest prints the completions of the last of words, one per line, each with a tab and a description.
func suggest(w io.Writer, app *App, words []string) {
	if len(words) == 0 {
		words = []string{""}
	}
	last, before := words[len(words)-1], words[:len(words)-1]
	l := parse(app, before)
	offer := func(word, means string) {
		if strings.HasPrefix(word, last) {
			fmt.Fprintf(w, "%s\t%s\n", word, means)
		}
	}
	if len(before) > 0 {
		if name, is := flagName(before[len(before)-1]); is && l.at.flag(name).Value != "" {
			for _, value := range l.at.flag(name).Values {
				offer(value, "")
			}
			return
		}
	}
	if strings.HasPrefix(last, "-") {
		offer("--help", "show help")
		for _, f := range l.at.Flags {
			offer("--"+f.Name, f.Usage)
		}
		return
	}
	if _, most := l.at.bounds(); most < 0 || len(l.args) < most {
		for _, value := range l.at.Values {
			offer(value, "")
		}
	}
	for _, s := range l.at.Subs {
		if len(l.args) == 0 {
			offer(s.Name, s.Usage)
		}
	}
	for _, t := range l.at.topics {
		if l.help && len(l.args) == 0 {
			offer(t[0], t[1])
		}
	}
}

// The scripts call the program for candidates. Without candidates the shells offer file names.
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
if [[ $funcstack[1] == _NAME ]]; then
  _NAME # from a folder of $fpath: this is the first completion itself
else
  compdef _NAME NAME
fi
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

// Completion returns the command that prints the completion script of a shell.
func Completion(name string) Command {
	scripts := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	return Command{
		Name:   "completion",
		Group:  Maintenance,
		Usage:  "print the completion script of a shell",
		Args:   "bash|zsh|fish",
		Values: []string{"bash", "zsh", "fish"},
		Long:   "The script completes commands, flags and their values. Load it in the startup\nfile of your shell.",
		Examples: "source <(" + name + " completion bash)\n" + name + " completion fish > ~/.config/fish/completions/" +
			name + ".fish",
		Run: func(_ context.Context, in *Input) error {
			fmt.Fprint(in.Stdout, strings.ReplaceAll(scripts[in.Args[0]], "NAME", name))
			return nil
		},
	}
}
