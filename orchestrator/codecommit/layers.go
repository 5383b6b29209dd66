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
	files := ".gitignore Cargo.lock build.sh codeRollup.sh LLMInstructions.md"
	folders := []string{ConfigDir, "logs", "target"}
	if v1 { // what it was told to, and its own inputs and outputs
		files = "build.sh query.txt codeRollup.txt gemini-key.txt openai-key.txt gemini-system-prompt.txt llm-user-output.txt"
		folders = []string{"logs", ".code-commit"}
	}
	for name := range strings.FieldsSeq(files) {
		list = append(list, entry{"/" + strings.ToLower(name), name})
	}
	if !v1 {
		list = append(list, entry{"userspecification.md", "any file named UserSpecification.md"})
	}
	list = append(list, entry{".git", "anything in a folder named .git"}, entry{".abl", "anything in a folder named .abl"},
		entry{".env*", "anything whose name begins with .env"}, entry{"/abl.config.yaml", "abl.config.yaml"}) // settings too: what a build may reach
	if logs != "" && !slices.Contains(folders, logs) && !strings.HasPrefix(strings.ToLower(logs), ConfigDir+"/") {
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

// lockFiles are what package managers write for themselves, and the ignore files of
// folders: protected unless agent-config/protected lifts them.
const lockFiles = "go.sum package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock poetry.lock " +
	"uv.lock Pipfile.lock composer.lock Gemfile.lock mix.lock flake.lock gradle.lockfile " +
	"packages.lock.json pubspec.lock deno.lock Cargo.lock .gitignore"

// locks are the lock files as rules, lower case.
func locks() *ignore.Rules {
	return ignore.Exclude([]byte(strings.ToLower(strings.ReplaceAll(lockFiles, " ", "\n"))))
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

// List is what is protected, in words, one entry each.
func (g *PathGuard) List() (all []string) {
	for _, e := range g.fixed {
		all = append(all, e.words)
	}
	if g.lifted == nil {
		return all
	}
	all = append(all, "anything that git ignores (.gitignore and other excludes)")
	free := func(name string) bool { return !hit(g.lifted, strings.ToLower(name)) }
	if names := slices.DeleteFunc(strings.Fields(lockFiles), free); len(names) > 0 {
		all = append(all, "in any folder: "+strings.Join(names, ", "))
	}
	for l := range strings.SplitSeq(string(g.list), "\n") {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' && l[0] != '!' {
			all = append(all, "anything that matches "+l)
		}
	}
	return all
}
