package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// manager is a package manager of Node.js with the lock file that it wrote.
type manager struct {
	name    string // npm, pnpm, yarn or bun
	pack    string // the npm package that contains it, with its version; "" for npm itself
	install string // its arguments
	lock    string // a path in the tree, "" without a lock file
	env     string // variables that precede its name
}

// tools is where app.prepare installs a package manager that the scripts call.
const tools = "node_modules/.tools"

// lockFiles are the lock files with their package managers.
var lockFiles = [][2]string{
	{"package-lock.json", "npm"},
	{"npm-shrinkwrap.json", "npm"},
	{"pnpm-lock.yaml", "pnpm"},
	{"yarn.lock", "yarn"},
	{"bun.lock", "bun"},
	{"bun.lockb", "bun"},
}

// findManager returns the package manager of the lock file. If there are several lock files,
// packageManager decides.
func (n *node) findManager() manager {
	named, version, _ := strings.Cut(n.manifest.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+")
	var own, others string
	for _, f := range lockFiles {
		if f[1] == named {
			own += f[0] + " "
		} else {
			others += f[0] + " "
		}
	}
	m := manager{name: "npm", install: "ci", lock: n.nearest(own + others)}
	for _, f := range lockFiles {
		if path.Base(m.lock) == f[0] {
			m.name = f[1]
		}
	}
	if m.name != named {
		version = ""
	}
	if m.name == "npm" {
		return m
	}
	lock := n.tree.Text(m.lock)
	usual := map[string]string{"pnpm": pnpmOf(lock), "bun": "1", "yarn": "1.22.22"}
	m.pack, m.install = m.name+"@"+cmp.Or(version, usual[m.name]), "install --frozen-lockfile"
	if m.name == "yarn" && strings.Contains(lock, "__metadata:") { // Yarn 2 or newer
		m.pack, m.install = "@yarnpkg/cli-dist@"+cmp.Or(version, "4"), "install --immutable"
		// npm starts the app, and it needs node_modules.
		m.env = "YARN_NODE_LINKER=node-modules YARN_INSTALL_STATE_PATH=" + tools + "/yarn-state.gz "
	}
	return m
}

// pnpmOf returns the major version of pnpm that writes a lock file.
func pnpmOf(lock string) string {
	switch capture(`(?m)^lockfileVersion:\s*['"]?(\d+)`, lock) {
	case "5":
		return "7"
	case "6":
		return "8"
	}
	return "9"
}

const yarnPath = `(?m)^yarnPath:\s*['"]?(\S+?)['"]?$`

// installs returns the command that installs the packages of the lock file. With kept the package
// manager stays in node_modules, for scripts that call it.
func (m manager) installs(t *Tree, kept bool) string {
	dir := path.Dir(m.lock)
	own := capture(yarnPath, t.Text(path.Join(dir, ".yarnrc.yml")))
	switch {
	case m.name == "npm":
		return "npm " + m.install
	case kept:
		return "npm install --no-save --no-package-lock --prefix " + tools + " " + m.pack + " && " + m.env + tools +
			"/node_modules/.bin/" + m.name + " " + m.install
	case own != "" && t.Has(path.Join(dir, own)):
		return m.env + "node " + own + " " + m.install
	case strings.HasPrefix(m.pack, "@yarnpkg"):
		return m.env + "npx --yes -p " + m.pack + " yarn " + m.install
	}
	return "npx --yes " + m.pack + " " + m.install
}

// prepare records how the packages are installed.
func (n *node) prepare(kept bool) {
	from, command := Source{File: n.manager.lock}, n.manager.installs(n.tree, kept)
	if n.manager.lock == "" {
		if len(n.deps) == 0 {
			return
		}
		from, command = n.src("dependencies"), "npm install --no-save --no-package-lock"
	}
	if up := n.lockAbove(); up != "" {
		command = "cd " + up + " && " + command
	}
	delete(n.values, "app.prepare")
	n.install(from, command, "npm", "node_modules")
}

// lockAbove returns the relative path of the folder of the lock file, "" for the folder itself.
func (n *node) lockAbove() string {
	above := path.Dir(n.manager.lock)
	if n.manager.lock == "" || n.dir == "" || n.dir == above {
		return ""
	}
	below := folder{dir: strings.TrimPrefix(above, ".")}.inner(n.dir)
	return strings.TrimSuffix(strings.Repeat("../", 1+strings.Count(below, "/")), "/")
}

// missing returns a program that a script runs and that is not in the app's container, or "".
func (n *node) missing(text string) string {
	for _, other := range fields("pnpm yarn bun bunx docker docker-compose turbo nx lerna deno wrangler vercel netlify") {
		if _, installed := n.deps[other]; !installed && calls(text, other) && !n.keeps(other) {
			return other
		}
	}
	return ""
}

// keeps reports whether app.prepare can keep a package manager in node_modules: its lock file is in
// the folder.
func (n *node) keeps(program string) bool {
	return n.manager.lock != "" && n.lockAbove() == "" &&
		(n.manager.name == program || n.manager.name == "bun" && program == "bunx")
}

// withManager lets a command find the package manager that its script calls.
func (n *node) withManager(text, command string) string {
	called := func(name string) bool { return n.keeps(name) && calls(text, name) }
	if !slices.ContainsFunc(fields("pnpm yarn bun bunx"), called) {
		return command
	}
	n.prepare(true)
	return `export PATH="$PWD/` + tools + `/node_modules/.bin:$PATH" && ` + command
}
