package codecommit

import (
	"slices"
	"strings"

	"abl/internal/git/ignore"
)

// entry is one line of a list of what may not be touched.
type entry struct {
	pattern string // as in a .gitignore, lower case
	words   string // as the prompt and errors have it
}

// always is protected whatever a project says.
func always(v1 bool, logs string) (list []entry) {
	files := []string{".gitignore", "Cargo.lock", "build.sh", "codeRollup.sh", "LLMInstructions.md"}
	folders := []string{"agent-config", "logs", "target"}
	if v1 { // what it was told to, and its own inputs and outputs
		files = []string{"build.sh", "query.txt", "codeRollup.txt", "gemini-key.txt", "openai-key.txt", "gemini-system-prompt.txt", "llm-user-output.txt"}
		folders = []string{"logs", ".code-commit"}
	}
	for _, name := range files {
		list = append(list, entry{"/" + strings.ToLower(name), name})
	}
	if !v1 {
		list = append(list, entry{"userspecification.md", "any file named UserSpecification.md"})
	}
	list = append(list, entry{".git", "anything in a folder named .git"}, entry{".abl", "anything in a folder named .abl"},
		entry{".env*", "anything whose name begins with .env"}, entry{"/abl.config.yaml", "abl.config.yaml"}) // settings too: what a build may reach
	if logs != "" && !slices.Contains(folders, logs) && !strings.HasPrefix(strings.ToLower(logs), "agent-config/") {
		folders = append(folders, logs)
	}
	for _, name := range folders {
		list = append(list, entry{"/" + escape(strings.ToLower(name)), "anything in the " + name + " folder"})
	}
	return list
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
