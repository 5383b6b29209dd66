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

// Refused returns why a path of a commit must not be written to a work tree, "" if it may.
func Refused(path string, link bool) string {
	for step := range strings.SplitSeq(path, "/") {
		if step == "" || step == "." || step == ".." {
			return fmt.Sprintf("%q is not a name", step)
		}
		if why := refusedName(step, link && strings.HasSuffix(path, step)); why != "" {
			return why
		}
	}
	return ""
}

// ordinary reports quickly that git accepts a name. Names that git may reject begin with a dot, a
// tilde or a letter of git~1 or mailmap, or contain a backslash or non-ASCII characters.
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
var controlFolders = map[string]string{
	".gemini": forAgents, ".claude": forAgents, ".codex": forAgents, ".agents": forAgents, ".cursor": forAgents,
	".windsurf":   forAgents,
	".clinerules": forAgents, ".continue": forAgents, ".roo": forAgents, ".kiro": forAgents, ".opencode": forAgents,
	".copilot": forAgents,
	".aider":   forAgents, ".amazonq": forAgents, ".junie": forAgents, ".qwen": forAgents, ".augment": forAgents,
	".vscode": forEditor, ".idea": forEditor, ".zed": forEditor, ".devcontainer": forEditor, ".fleet": forEditor,
	".github": forCI, ".gitlab": forCI, ".circleci": forCI, ".buildkite": forCI, ".woodpecker": forCI, ".gitea": forCI,
	".forgejo": forCI,
	".husky":   forGit, ".githooks": forGit, ".lefthook": forGit,
	".cargo": forShell, ".bundle": forShell, ".mise": forShell, ".direnv": forShell, ".yarn": forShell,
}

// controlFiles are the files that steer a tool.
var controlFiles = map[string]string{
	"gemini.md": forAgents, ".geminiignore": forAgents, "claude.md": forAgents, "claude.local.md": forAgents,
	".mcp.json": forAgents, "mcp.json": forAgents,
	"agents.md": forAgents, "agents.override.md": forAgents, ".cursorrules": forAgents, ".cursorignore": forAgents,
	".windsurfrules": forAgents, ".clinerules": forAgents, ".roorules": forAgents, "opencode.json": forAgents,
	"opencode.jsonc":  forAgents,
	".aider.conf.yml": forAgents, "qwen.md": forAgents, "copilot-instructions.md": forAgents,
	".devcontainer.json": forEditor, ".exrc": forEditor, ".nvimrc": forEditor, ".nvim.lua": forEditor, ".vimrc": forEditor,
	".dir-locals.el": forEditor,
	".gitlab-ci.yml": forCI, "jenkinsfile": forCI, ".travis.yml": forCI, ".drone.yml": forCI,
	"azure-pipelines.yml": forCI, "bitbucket-pipelines.yml": forCI,
	".cirrus.yml": forCI, "appveyor.yml": forCI, ".pre-commit-config.yaml": forCI, "cloudbuild.yaml": forCI,
	"buildspec.yml": forCI,
	".gitmodules":   forGit, ".gitattributes": forGit, ".gitconfig": forGit, ".lfsconfig": forGit, "lefthook.yml": forGit,
	".lefthook.yml": forGit, ".huskyrc": forGit,
	".envrc": forShell, ".env": forShell, ".npmrc": forShell, ".yarnrc": forShell, ".yarnrc.yml": forShell,
	".pnpmfile.cjs": forShell, ".tool-versions": forShell,
	"mise.toml": forShell, ".mise.toml": forShell, ".bazelrc": forShell, "pip.conf": forShell, ".pypirc": forShell,
	".netrc":  forShell,
	".bashrc": forShell, ".bash_profile": forShell, ".profile": forShell, ".zshrc": forShell, ".zprofile": forShell,
	".zshenv": forShell, ".inputrc": forShell,
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
