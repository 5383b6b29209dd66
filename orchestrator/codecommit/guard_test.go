package codecommit_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/orchestrator/codecommit"
	"abl/roles/environment"
)

// project creates a folder. A name that ends with / is a folder, one with -> a link.
func project(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	git(t, root, "", "init", "-q")
	for name, content := range files {
		at := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(at), 0o755)
		switch {
		case strings.HasSuffix(name, "/"):
			err = errors.Join(err, os.MkdirAll(at, 0o755))
		case strings.HasPrefix(content, "->"):
			err = errors.Join(err, os.Symlink(content[2:], at))
		default:
			err = errors.Join(err, os.WriteFile(at, []byte(content), 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// guard returns the guard of a project that writes its logs to a folder.
func guard(root, protocol, logs string) (*codecommit.PathGuard, error) {
	p := codecommit.ProfileOf(protocol)
	return codecommit.Project{Root: root, Profile: p, Logs: filepath.Join(root, logs)}.Guard()
}

// judge returns the rule that forbids a path, "" if it may be changed.
func judge(t testing.TB, g *codecommit.PathGuard, path string, remove bool) string {
	t.Helper()
	edits, err := g.Check(t.Context(), []codecommit.Edit{{Path: path, Line: 1, Delete: remove}})
	var refused codecommit.Mistake
	switch {
	case errors.As(err, &refused):
		rule, about := strings.CutPrefix(err.Error(), fmt.Sprintf("line 1: %q may not be changed: ", path))
		if !about {
			t.Errorf("error for %q: got %v, want one about this path", path, err)
		}
		return rule
	case err != nil:
		t.Fatal(err)
	case len(edits) != 1:
		t.Fatalf("edits of %q: got %d, want 1", path, len(edits))
	}
	return ""
}

func TestPaths(t *testing.T) {
	root := project(t, map[string]string{
		".gitignore": "/agent-config\n*.log\nsecret/\n!secret/public.txt\r\nout\r\n", "src/main.go": "x", "a": "x",
		"out-link": "->/etc", "dir-link": "->src", "file-link": "->a", "folder/": "", "sub/.gitignore": "gen\n!keep.log\n",
		"agent-config/protected": "# ours\nVENDOR/\n*.gen.go\n!yarn.lock\n!/build.sh\n",
	})
	g, err := guard(root, codecommit.V2, "diary")
	if err != nil {
		t.Fatal(err)
	}
	free := []string{
		"a", "b", "src/main.go", "src/new/deep/file.rs", "./src/main.go", "my file.txt", "Cargo.toml", "go.mod", "package.json",
		"src/build.sh", "src/LLMInstructions.md", "src/target/x", "src/logs/x", ".gitattributes", "gitignore", ".github/x", "git/x",
		"a..b", "..a", "src/...a", "envfile", "yarn.lock", "web/yarn.lock", "sub/keep.log", "ünïcode/名.txt", "x/agent-config/y", "100%", "src/con", "~a",
	}
	for _, p := range free {
		if rule := judge(t, g, p, false); rule != "" {
			t.Errorf("rule for %q: got %q, want none", p, rule)
		}
	}
	const plain = "not a plain path"
	for p, want := range map[string]string{
		"": plain, ".": plain, "./": plain, "src/": plain, "/etc/passwd": plain, "//etc/passwd": plain,
		".//etc/passwd": plain, "../x": plain, "src/../../x": plain, "src/../a": plain, "./../x": plain, "..": plain, "src/..": plain,
		"src//a": plain, "src/./a": plain, "src/././../a": plain, `..\x`: "backslash", `src\main.go`: "backslash", `C:\x`: "backslash", "C:/x": "drive", "c:x": "drive",
		"%2e%2e/x": "looks like", "..%2fx": "looks like", "src/%2E%2E/x": "looks like", "..%5cx": "looks like", "~/x": "home", "．．/x": "looks like", "‥/x": "looks like", "src∕x": "looks like",
		"a\x00b": "invisible", "a\nb": "invisible", "a\u200bb": "invisible", ".g\u200cit/config": "invisible", "\xff": "UTF-8", "a\x1b[2J": "invisible", "a\u202eb": "invisible",
		"... /x": "blank", "a./b": "dot", "a /b": "blank", " a": "blank", strings.Repeat("x", 256): "255", strings.Repeat("x/", 3000) + "x": "longer than a path",

		".gitignore": ".gitignore", "./.gitignore": ".gitignore", "Cargo.lock": "Cargo.lock", "cargo.LOCK": "Cargo.lock", "build.sh": "build.sh", "./build.sh": "build.sh", "././build.sh": "build.sh", "BUILD.sh": "build.sh",
		"codeRollup.sh": "codeRollup.sh", "CODEROLLUP.SH": "codeRollup.sh", "LLMInstructions.md": "LLMInstructions.md", "UserSpecification.md": "UserSpecification.md", "src/deep/UserSpecification.md": "UserSpecification.md", "src/userspecification.MD": "UserSpecification.md",
		".git": ".git folder", ".git/config": ".git folder", "./.git/hooks/x": ".git folder", ".GIT/config": ".git folder", "sub/.git/config": ".git folder", "sub/.Git": ".git folder", "git~1/config": "another spelling", ".git::$INDEX_ALLOCATION/x": "another spelling",
		"agent-config": "agent-config", "agent-config/query.txt": "agent-config", "Agent-Config/gemini-key.txt": "agent-config", "agent-config/protected": "agent-config", "logs/x": "logs folder", "target/debug/x": "target folder", "target": "target folder",
		".env": ".env", "src/.env.local": ".env", ".envrc": ".env", ".abl/state.json": ".abl", "abl.config.yaml": "abl.config.yaml", "diary/x": "diary folder",
		"go.sum": "is written by a program", "web/package-lock.json": "is written by a program", "sub/.gitignore": "is written by a program", "vendor/x": "agent-config/protected", "a.gen.go": "agent-config/protected", "x/Cargo.lock": "is written by a program",
		"x.log": "ignored by git", "sub/x.log": "ignored by git", "secret/x": "ignored by git", "secret/public.txt": "ignored by git", "out": "ignored by git", "out/x": "ignored by git", "sub/gen": "ignored by git", "sub/gen/x": "ignored by git",

		"dir-link/x": "is a link", "out-link/passwd": "is a link", "file-link": "is a link", "a/b": "not a folder", "a/b/c": "not a folder", "folder": "it is a folder",
	} {
		if rule := judge(t, g, p, false); !strings.Contains(rule, want) || rule == "" {
			t.Errorf("rule for %q: got %q, want %q", p, rule, want)
		}
	}
	for p, want := range map[string]string{"a": "", "src/main.go": "", "nope": "no such file", "no/pe": "no such file", "folder": "is a folder", "file-link": "is a link", "build.sh": "build.sh"} {
		if rule := judge(t, g, p, true); !strings.Contains(rule, want) || (rule == "") != (want == "") {
			t.Errorf("rule for deleting %q: got %q, want %q", p, rule, want)
		}
	}
}

func TestEditsTogether(t *testing.T) {
	root := project(t, map[string]string{"a": "x", "b": "x"})
	g, err := guard(root, codecommit.V2, "logs")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ paths, want string }{
		{"a b c/d", ""},
		{"a ./a", "line 1 already gave it"},
		{"new/x new", `the folder "new" a file`},
		{"new new/x/y", `the folder "new" a file`},
		{"a build.sh b", "build.sh"},
	} {
		var edits []codecommit.Edit
		for i, p := range strings.Fields(c.paths) {
			edits = append(edits, codecommit.Edit{Path: p, Line: i + 1})
		}
		_, err := g.Check(t.Context(), edits)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.paths, err, c.want)
		}
	}
}

func TestV1(t *testing.T) {
	root := project(t, map[string]string{".gitignore": "*.log\n"})
	g, _ := guard(root, codecommit.V1, "logs")
	for _, p := range []string{"a", "x.log", ".gitignore", "Cargo.lock", "UserSpecification.md", "src/build.sh", "src/query.txt"} {
		if rule := judge(t, g, p, false); rule != "" {
			t.Errorf("rule for %q: got %q, want none", p, rule)
		}
	}
	for _, p := range []string{"build.sh", "./build.sh", ".git/config", "sub/.GIT/x", "query.txt", "codeRollup.txt", "gemini-key.txt", "gemini-system-prompt.txt", "llm-user-output.txt", "logs/1/query-1.txt", "abl.config.yaml", "../x", "/x"} {
		if judge(t, g, p, false) == "" {
			t.Errorf("rule for %q: got none, want one", p)
		}
	}
}

func TestList(t *testing.T) {
	root := project(t, map[string]string{"agent-config/protected": "docs/\n!go.sum\n"})
	g, err := guard(root, codecommit.V2, "logs")
	if err != nil {
		t.Fatal(err)
	}
	list := g.List()
	want := []string{".gitignore", "Cargo.lock", "build.sh", "codeRollup.sh", "LLMInstructions.md"}
	if !slices.Equal(list[:len(want)], want) {
		t.Errorf("start of the list: got %q, want %q", list[:len(want)], want)
	}
	all := strings.Join(list, "\n")
	if !strings.Contains(all, "package-lock.json") || strings.Contains(all, "go.sum") || !strings.Contains(all, "anything that matches docs/") {
		t.Errorf("list: got %s, want package-lock.json and docs/ in it, and no go.sum", all)
	}
}

// If the project is a folder of a repository, the ignore rules of the folders above apply.
func TestRepositoryAbove(t *testing.T) {
	top := project(t, map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/objects/": "", ".git/refs/": "", ".gitignore": "*.tmp\n/app/only\n:odd\n", ".git/info/exclude": "private\n", "app/.gitignore": "!keep.tmp\n"})
	g, err := guard(filepath.Join(top, "app"), codecommit.V2, "logs")
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{"x.tmp": true, "keep.tmp": false, "only": true, "private": true, ":odd": true, ":even": false, "x": false} {
		if got := judge(t, g, p, false) != ""; got != want {
			t.Errorf("%q is refused: got %t, want %t", p, got, want)
		}
	}
}

// personally configures the user's excludes for git.
func personally(t *testing.T) (excludes string) {
	t.Helper()
	home := t.TempDir()
	excludes = filepath.Join(home, "mine")
	if err := os.WriteFile(filepath.Join(home, "config"), []byte("[core]\n\texcludesFile = ~/link\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(excludes, filepath.Join(home, "link")); err != nil { // like users who store such files elsewhere
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(home, "config"))
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	return excludes
}

// The user's excludes apply wherever git finds them, and those of the repository also in a linked
// worktree.
func TestExcludes(t *testing.T) {
	mine := personally(t)
	main := project(t, map[string]string{"a": "x"})
	git(t, main, "", "init", "-q")
	git(t, main, "", "add", "a")
	git(t, main, "", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, main, "", "worktree", "add", "-q", linked)
	ignored := func(root, name string) bool {
		t.Helper()
		g, err := guard(root, codecommit.V2, "")
		if err != nil {
			t.Fatal(err)
		}
		return judge(t, g, name, false) == "ignored by git (.gitignore and other excludes)"
	}
	for _, root := range []string{main, linked} {
		if ignored(root, "own") || ignored(root, "here") {
			t.Errorf("own and here ignored in %s before the excludes: got %t and %t, want false and false",
				root, ignored(root, "own"), ignored(root, "here"))
		}
	}
	for at, text := range map[string]string{mine: "own\nhere\n", filepath.Join(main, ".git/info/exclude"): "!here\n"} {
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, root := range []string{main, linked} {
		if !ignored(root, "own") || ignored(root, "here") {
			t.Errorf("own and here ignored in %s: got %t and %t, want true and false",
				root, ignored(root, "own"), ignored(root, "here"))
		}
	}
	config := filepath.Join(filepath.Dir(mine), "xdg")
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null")
	t.Setenv("XDG_CONFIG_HOME", config)
	if ignored(main, "own") || ignored(main, "usual") {
		t.Errorf("own and usual ignored without excludes: got %t and %t, want false and false",
			ignored(main, "own"), ignored(main, "usual"))
	}
	if err := errors.Join(os.MkdirAll(config+"/git", 0o755), os.WriteFile(config+"/git/ignore", []byte("usual\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if !ignored(main, "usual") {
		t.Error("usual ignored by git's default excludes: got false, want true")
	}
	t.Setenv("PATH", "/nowhere")
	g, err := guard(main, codecommit.V2, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Check(t.Context(), []codecommit.Edit{{Path: "a"}}); err == nil || errors.As(err, new(codecommit.Mistake)) {
		t.Errorf("without git: got %v, want an error that is not the model's", err)
	}
}

func git(t testing.TB, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 1 { // 1: none is ignored
		t.Fatalf("git %q: %v", args, err)
	}
	return string(out)
}

// Allowed paths are below the project and name no protected file.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"a/b", "./a", "../a", ".git/x", "a/.GIT", "./build.sh", "/x", "a\\b", "%2e%2e/x", "．．/x"} {
		f.Add(s)
	}
	root := project(f, nil)
	g, err := guard(root, codecommit.V2, "logs")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p string) {
		edits, err := g.Check(t.Context(), []codecommit.Edit{{Path: p}})
		if err != nil {
			return
		}
		clean := edits[0].Path
		if !filepath.IsLocal(clean) || path.Clean(clean) != clean || filepath.Join(root, clean) != root+"/"+clean {
			t.Fatalf("path of %q: got %q, want a clean local one", p, clean)
		}
		for name := range strings.SplitSeq(clean, "/") {
			if strings.EqualFold(name, ".git") || strings.EqualFold(clean, "build.sh") || strings.EqualFold(name, "UserSpecification.md") {
				t.Fatalf("rule for %q: got none, want one", clean)
			}
		}
	})
}

// A file that is not UTF-8 text cannot be rewritten, because the model cannot have seen all of its
// bytes. It can be deleted.
func TestIllegibleFilesAreNotRewritten(t *testing.T) {
	root := plant(t, map[string]string{"latin1.txt": "caf\xe9\n", "utf16.txt": "\xff\xfea\x00", "nul.bin": "a\x00b", "utf8.txt": "café\n"})
	git(t, root, "", "init", "-q")
	guard, err := codecommit.Project{Root: root, Profile: codecommit.ProfileOf(codecommit.V2)}.Guard()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		edit codecommit.Edit
		want string // a part of the error, may be ""
	}{
		{codecommit.Edit{Path: "latin1.txt", Content: "x\n", Line: 3}, `line 3: "latin1.txt" may not be changed: the file is not UTF-8 text`},
		{codecommit.Edit{Path: "utf16.txt", Content: "x\n"}, "the file is not UTF-8 text"},
		{codecommit.Edit{Path: "nul.bin", Content: "x\n"}, "the file is not UTF-8 text"},
		{codecommit.Edit{Path: "latin1.txt", Delete: true}, ""},
		{codecommit.Edit{Path: "utf8.txt", Content: "x\n"}, ""},
		{codecommit.Edit{Path: "new.txt", Content: "x\n"}, ""},
	} {
		t.Run(fmt.Sprintf("%s-deleted-%v", c.edit.Path, c.edit.Delete), func(t *testing.T) {
			_, err := guard.Check(t.Context(), []codecommit.Edit{c.edit})
			if got := fmt.Sprint(err); (err != nil) != (c.want != "") || !strings.Contains(got, c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

// A repository of another owner is refused with git's message and a fix.
func TestRepositoryOfAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	root := plant(t, map[string]string{"a.txt": "x\n"})
	git(t, root, "", "init", "-q")
	err := errors.Join(os.Chown(root, 12345, 12345), os.Chown(filepath.Join(root, ".git"), 12345, 12345))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_CONFIG_GLOBAL", "/dev/null") // a user may trust every folder
	_, err = codecommit.Project{Root: root, Profile: codecommit.ProfileOf(codecommit.V1)}.Exposed(t.Context())
	hinted, _ := errors.AsType[*environment.Error](err)
	if hinted == nil || !strings.Contains(err.Error(), "dubious ownership") || hinted.Do != "if you trust its owner: git config --global --add safe.directory "+root {
		t.Errorf("got %v (%+v), want git's words and safe.directory", err, hinted)
	}
}
