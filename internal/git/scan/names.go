package scan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"abl/internal/lazyregexp"
)

// NTFS reaches a name also with dots and spaces behind it and with a stream (:),
// and by a short name: six letters and a number, or when those are taken what the
// name hashes to, with a number that fills up eight. Windows reads a backslash as a
// slash.
var (
	gitItself = variants(`\.git|git~1`, `:\\`)
	modules   = dotfile("gitmodules", "gi7eba")
	dotfiles  = []func() *regexp.Regexp{modules, dotfile("gitattributes", "gi7d29"), dotfile("gitignore", "gi250a"), dotfile("mailmap", "maba30")}
)

func dotfile(name, hash string) func() *regexp.Regexp {
	all := `\.` + name + `|` + name[:6] + `~[1-4]`
	for n := range len(hash) + 1 {
		all += fmt.Sprintf(`|%s~[1-9][0-9]{%d}`, hash[:n], len(hash)-n)
	}
	return variants(all, ":")
}

func variants(name, stops string) func() *regexp.Regexp {
	return lazyregexp.New(`(?i)(?:^|\\)(?:` + name + `)[. ]*(?:$|[` + stops + `])`)
}

// refusedName says why git, or git fsck --strict, refuses a path component; ""
// means that it does not. link tells whether the name is a symbolic link's.
func refusedName(name string, link bool) string {
	switch {
	case ordinary(name):
		return ""
	case reads(name, gitItself()):
		return "git reads this name as .git"
	case link && slices.ContainsFunc(dotfiles, func(as func() *regexp.Regexp) bool { return reads(name, as()) }):
		return "git refuses a link under this name"
	}
	return ""
}

// Refused says why a path of a commit is not to be written into a work tree, "" for none.
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

// ordinary knows most names at a glance: those git minds begin with a dot, a
// tilde or a letter of git~1 or mailmap, or hide it behind a backslash or beyond ASCII.
func ordinary(name string) bool {
	hides := func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }
	return strings.IndexByte(".~gGmM", name[0]) < 0 && !strings.ContainsFunc(name, hides)
}

// reads says whether some system takes a name for one of these. HFS+ does not
// count some characters, and ends a name at broken UTF-8.
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

// isModules says whether git reads a file as one that tells of submodules.
func isModules(name string) bool { return !ordinary(name) && reads(name, modules()) }

// What a control file steers, for people.
const (
	forAgents = "steers an agent's CLI"
	forEditor = "steers an editor"
	forCI     = "steers CI"
	forGit    = "steers git"
	forShell  = "steers a shell or a package manager"
)

// Hook is what a file in the folder of git's hooks is.
const Hook = "is a hook of git's"

// Runs says whether git or a shell runs what steers so, or does what it says.
func Runs(what string) bool { return what == forGit || what == forShell || what == Hook }

// controlFolders steer by all that stands in them.
var controlFolders = map[string]string{
	".gemini": forAgents, ".claude": forAgents, ".codex": forAgents, ".agents": forAgents, ".cursor": forAgents, ".windsurf": forAgents,
	".clinerules": forAgents, ".continue": forAgents, ".roo": forAgents, ".kiro": forAgents, ".opencode": forAgents, ".copilot": forAgents,
	".aider": forAgents, ".amazonq": forAgents, ".junie": forAgents, ".qwen": forAgents, ".augment": forAgents,
	".vscode": forEditor, ".idea": forEditor, ".zed": forEditor, ".devcontainer": forEditor, ".fleet": forEditor,
	".github": forCI, ".gitlab": forCI, ".circleci": forCI, ".buildkite": forCI, ".woodpecker": forCI, ".gitea": forCI, ".forgejo": forCI,
	".husky": forGit, ".githooks": forGit, ".lefthook": forGit,
	".cargo": forShell, ".bundle": forShell, ".mise": forShell, ".direnv": forShell, ".yarn": forShell,
}

// controlFiles steer by themselves.
var controlFiles = map[string]string{
	"gemini.md": forAgents, ".geminiignore": forAgents, "claude.md": forAgents, "claude.local.md": forAgents, ".mcp.json": forAgents, "mcp.json": forAgents,
	"agents.md": forAgents, "agents.override.md": forAgents, ".cursorrules": forAgents, ".cursorignore": forAgents,
	".windsurfrules": forAgents, ".clinerules": forAgents, ".roorules": forAgents, "opencode.json": forAgents, "opencode.jsonc": forAgents,
	".aider.conf.yml": forAgents, "qwen.md": forAgents, "copilot-instructions.md": forAgents,
	".devcontainer.json": forEditor, ".exrc": forEditor, ".nvimrc": forEditor, ".nvim.lua": forEditor, ".vimrc": forEditor,
	".dir-locals.el": forEditor,
	".gitlab-ci.yml": forCI, "jenkinsfile": forCI, ".travis.yml": forCI, ".drone.yml": forCI, "azure-pipelines.yml": forCI, "bitbucket-pipelines.yml": forCI,
	".cirrus.yml": forCI, "appveyor.yml": forCI, ".pre-commit-config.yaml": forCI, "cloudbuild.yaml": forCI, "buildspec.yml": forCI,
	".gitmodules": forGit, ".gitattributes": forGit, ".gitconfig": forGit, ".lfsconfig": forGit, "lefthook.yml": forGit, ".lefthook.yml": forGit, ".huskyrc": forGit,
	".envrc": forShell, ".env": forShell, ".npmrc": forShell, ".yarnrc": forShell, ".yarnrc.yml": forShell, ".pnpmfile.cjs": forShell, ".tool-versions": forShell,
	"mise.toml": forShell, ".mise.toml": forShell, ".bazelrc": forShell, "pip.conf": forShell, ".pypirc": forShell, ".netrc": forShell,
	".bashrc": forShell, ".bash_profile": forShell, ".profile": forShell, ".zshrc": forShell, ".zprofile": forShell, ".zshenv": forShell, ".inputrc": forShell,
}

// steers says what a name steers wherever it stands, "" for nothing. Letter case
// is ignored, since some file systems and tools ignore it.
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

// SteersPath says what the file at a path steers, by its name or a folder that
// it is in.
func SteersPath(path string) string {
	for {
		step, rest, more := strings.Cut(path, "/")
		if what := steers(step, more); what != "" || !more {
			return what
		}
		path = rest
	}
}
