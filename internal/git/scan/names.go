package scan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// NTFS also finds a name with trailing dots and spaces, with a stream (:), and by its short name:
// six letters and a number, or a part of a hash with a number, eight characters in total. Windows
// treats a backslash as a slash.
var (
	gitItself = variants(`\.git|git~1`, `:\\`)
	modules   = dotfile("gitmodules", "gi7eba")
	dotfiles  = []*regexp.Regexp{modules, dotfile("gitattributes", "gi7d29"), dotfile("gitignore", "gi250a"),
		dotfile("mailmap", "maba30")}
)

func dotfile(name, hash string) *regexp.Regexp {
	all := `\.` + name + `|` + name[:6] + `~[1-4]`
	for n := range len(hash) + 1 {
		all += fmt.Sprintf(`|%s~[1-9][0-9]{%d}`, hash[:n], len(hash)-n)
	}
	return variants(all, ":")
}

func variants(name, stops string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|\\)(?:` + name + `)[. ]*(?:$|[` + stops + `])`)
}

// refusedName returns why git, or git fsck --strict, rejects a path element, "" if it does not.
// link is set for a symbolic link.
func refusedName(name string, link bool) string {
	switch {
	case ordinary(name):
		return ""
	case reads(name, gitItself):
		return "git reads this name as .git"
	case link && slices.ContainsFunc(dotfiles, func(as *regexp.Regexp) bool { return reads(name, as) }):
		return "git rejects a link with this name"
	}
	return ""
}

// Refused returns why a path of a commit must not be written to a work tree, "" if it may. link is
// set if the path is a symbolic link.
func Refused(path string, link bool) string {
	last := path[strings.LastIndexByte(path, '/')+1:]
	for step := range strings.SplitSeq(path, "/") {
		if step == "" || step == "." || step == ".." {
			return fmt.Sprintf("%q is not a name", step)
		}
		if why := refusedName(step, link && step == last); why != "" {
			return why
		}
	}
	return ""
}

// ordinary reports quickly that git accepts a name. Names that git may reject begin with a dot, a
// tilde, or the first letter of git~1 or mailmap, or contain a backslash or non-ASCII characters.
func ordinary(name string) bool {
	hides := func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }
	return strings.IndexByte(".~gGmM", name[0]) < 0 && !strings.ContainsFunc(name, hides)
}

// reads reports whether some file system treats a name as one that as matches. HFS+ ignores some
// characters and ends a name at invalid UTF-8.
func reads(name string, as *regexp.Regexp) bool {
	whole, _, _ := strings.Cut(strings.ToValidUTF8(name, "\x00"), "\x00")
	plain := strings.Map(func(r rune) rune {
		if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
			return -1
		}
		return r
	}, whole)
	return as.MatchString(name) || as.MatchString(plain)
}

// isModules reports whether git reads a file as .gitmodules.
func isModules(name string) bool { return !ordinary(name) && reads(name, modules) }

// Descriptions of control files, for reports.
const (
	forAgents = "steers an agent's CLI"
	forEditor = "steers an editor"
	forCI     = "steers CI"
	forGit    = "steers git"
	forShell  = "steers a shell or a package manager"
)

// Hook is the description of a file in the directory of git's hooks.
const Hook = "is a git hook"

// Runs reports whether git or a shell executes or obeys a file with this description.
func Runs(what string) bool { return what == forGit || what == forShell || what == Hook }

// controlFolders are the directories in which every file steers a tool.
var controlFolders = described(map[string]string{
	forAgents: `.gemini .claude .codex .agents .cursor .windsurf .clinerules .continue .roo .kiro .opencode .copilot
		.aider .amazonq .junie .qwen .augment`,
	forEditor: ".vscode .idea .zed .devcontainer .fleet",
	forCI:     ".github .gitlab .circleci .buildkite .woodpecker .gitea .forgejo",
	forGit:    ".husky .githooks .lefthook",
	forShell:  ".cargo .bundle .mise .direnv .yarn",
})

// controlFiles are the files that steer a tool.
var controlFiles = described(map[string]string{
	forAgents: `gemini.md .geminiignore claude.md claude.local.md .mcp.json mcp.json agents.md agents.override.md
		.cursorrules .cursorignore .windsurfrules .clinerules .roorules opencode.json opencode.jsonc .aider.conf.yml
		qwen.md copilot-instructions.md`,
	forEditor: ".devcontainer.json .exrc .nvimrc .nvim.lua .vimrc .dir-locals.el",
	forCI: `.gitlab-ci.yml jenkinsfile .travis.yml .drone.yml azure-pipelines.yml bitbucket-pipelines.yml .cirrus.yml
		appveyor.yml .pre-commit-config.yaml cloudbuild.yaml buildspec.yml`,
	forGit: ".gitmodules .gitattributes .gitconfig .lfsconfig lefthook.yml .lefthook.yml .huskyrc",
	forShell: `.envrc .env .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .tool-versions mise.toml .mise.toml .bazelrc
		pip.conf .pypirc .netrc .bashrc .bash_profile .profile .zshrc .zprofile .zshenv .inputrc`,
})

// described maps each name in the lists to the description of its list.
func described(lists map[string]string) map[string]string {
	all := map[string]string{}
	for what, names := range lists {
		for name := range strings.FieldsSeq(names) {
			all[name] = what
		}
	}
	return all
}

// steers describes what a file or directory with this name steers, "" for nothing. It ignores case,
// as some file systems and tools do.
func steers(base string, folder bool) string {
	if folder {
		return controlFolders[strings.ToLower(base)]
	}
	lower := strings.ToLower(base)
	if strings.HasSuffix(lower, ".code-workspace") {
		return forEditor
	}
	return controlFiles[lower]
}

// SteersPath describes what the file at a path steers, by its name or that of a parent directory,
// "" for nothing.
func SteersPath(path string) string {
	for {
		step, rest, more := strings.Cut(path, "/")
		if what := steers(step, more); what != "" || !more {
			return what
		}
		path = rest
	}
}
