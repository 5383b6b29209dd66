package guard

import (
	"strings"

	"abl/orchestrator/workspace/ignore"
)

// entry is one line of a list of what may not be touched.
type entry struct {
	pattern string // as in a .gitignore, lower case
	words   string // as the prompt and errors have it
}

// always is protected whatever a project says.
func always(logs string) []entry {
	list := []entry{
		{"/.gitignore", ".gitignore"},
		{"/cargo.lock", "Cargo.lock"},
		{"/build.sh", "build.sh"},
		{"/coderollup.sh", "codeRollup.sh"},
		{"/llminstructions.md", "LLMInstructions.md"},
		{"userspecification.md", "any file named UserSpecification.md"},
		{".git", "anything in a folder named .git"},
		{"/agent-config", "anything in the agent-config folder"},
		{"/logs", "anything in the logs folder"},
		{"/target", "anything in the target folder"},
		{".env*", "anything whose name begins with .env"},
		{".abl", "anything in a folder named .abl"},
		{"/abl.config.yaml", "abl.config.yaml"}, // settings too: what a build may reach
	}
	return withLogs(list, logs)
}

// alwaysV1 is what the protocol v1 protects: what it was told to, and its own
// inputs and outputs.
func alwaysV1(logs string) []entry {
	list := []entry{
		{"/build.sh", "build.sh"},
		{".git", "anything in a folder named .git"},
		{"/query.txt", "query.txt"},
		{"/coderollup.txt", "codeRollup.txt"},
		{"/gemini-key.txt", "gemini-key.txt"},
		{"/openai-key.txt", "openai-key.txt"},
		{"/gemini-system-prompt.txt", "gemini-system-prompt.txt"},
		{"/llm-user-output.txt", "llm-user-output.txt"},
		{"/logs", "anything in the logs folder"},
		{".env*", "anything whose name begins with .env"},
		{".abl", "anything in a folder named .abl"},
		{"/abl.config.yaml", "abl.config.yaml"}, // settings too: what a build may reach
		{"/.code-commit", "anything in the .code-commit folder"},
	}
	return withLogs(list, logs)
}

// withLogs adds the folder of the logs where it is none of those listed.
func withLogs(list []entry, logs string) []entry {
	folded := strings.ToLower(logs)
	if logs == "" || logs == "logs" || strings.HasPrefix(folded, "agent-config/") {
		return list
	}
	return append(list, entry{"/" + escape(folded), "anything in the " + logs + " folder"})
}

// escape lets a name stand for itself in a pattern.
func escape(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "!", `\!`, "#", `\#`).Replace(name)
}

// locks are what package managers write for themselves, and the ignore files of
// folders: protected unless agent-config/protected lifts them.
func locks() []string {
	return []string{
		"go.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "poetry.lock",
		"uv.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock", "mix.lock", "flake.lock", "gradle.lockfile",
		"packages.lock.json", "pubspec.lock", "deno.lock", "Cargo.lock", ".gitignore",
	}
}

// hit says whether rules match a path or a folder on its way, which git too
// looks at first.
func hit(rules *ignore.Rules, path string) bool {
	for i := range len(path) {
		if path[i] == '/' && rules.Ignored(path[:i], true) {
			return true
		}
	}
	return rules.Ignored(path, false)
}

// lockRules are the locks as rules, lower case.
func lockRules() string { return strings.ToLower(strings.Join(locks(), "\n")) }
