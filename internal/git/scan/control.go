package scan

import "strings"

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
