package cli

import (
	"context"
	"strings"
)

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
			return show(in.Stdout, strings.ReplaceAll(script, "NAME", name))
		},
	}
}
