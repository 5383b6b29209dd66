package detect

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// manager is a package manager of Node.js with the lock file that it wrote.
type manager struct {
	name    string // npm, pnpm, yarn or bun
	pack    string // the npm package that brings it, with its version; "" for npm itself
	install string // its arguments
	lock    string // a path in the tree, "" without a lock file
	env     string // what is set before its name
}

// tools is where app.prepare puts a package manager that the scripts call.
const tools = "node_modules/.tools"

// findManager finds the package manager by its lock file. Of several lock files the one of
// packageManager counts.
func (p *project) findManager() (m manager) {
	named, version, _ := strings.Cut(p.node.PackageManager, "@")
	version, _, _ = strings.Cut(version, "+")
	owners := map[string]string{
		"package-lock.json": "npm", "npm-shrinkwrap.json": "npm", "pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn",
		"bun.lock": "bun", "bun.lockb": "bun",
	}
	order := []string{"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb"}
	slices.SortStableFunc(order, func(a, b string) int {
		return cmp.Compare(b2i(owners[a] != named), b2i(owners[b] != named))
	})
	m.lock = p.nearest(order...)
	m.name = cmp.Or(owners[path.Base(m.lock)], "npm")
	if m.name != named {
		version = ""
	}
	switch m.name {
	case "npm":
		m.install = "ci"
	case "pnpm":
		m.pack, m.install = "pnpm@"+cmp.Or(version, pnpmOf(p.tree.Text(m.lock))), "install --frozen-lockfile"
	case "bun":
		m.pack, m.install = "bun@"+cmp.Or(version, "1"), "install --frozen-lockfile"
	case "yarn":
		m.pack, m.install = "yarn@"+cmp.Or(version, "1.22.22"), "install --frozen-lockfile"
		if strings.Contains(p.tree.Text(m.lock), "__metadata:") {
			m.pack, m.install = "@yarnpkg/cli-dist@"+cmp.Or(version, "4"), "install --immutable"
			// npm starts the app, which needs node_modules.
			m.env = "YARN_NODE_LINKER=node-modules YARN_INSTALL_STATE_PATH=" + tools + "/yarn-state.gz "
		}
	}
	return m
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// command is how the manager installs what its lock file names. With kept it stays in node_modules,
// for scripts that call it.
func (p *project) installs(m manager, kept bool) string {
	own := yarnPath().FindStringSubmatch(p.tree.Text(path.Join(path.Dir(m.lock), ".yarnrc.yml")))
	switch {
	case m.name == "npm":
		return "npm " + m.install
	case kept:
		return "npm install --no-save --no-package-lock --prefix " + tools + " " + m.pack + " && " + m.env + tools +
			"/node_modules/.bin/" + m.name + " " + m.install
	case own != nil && p.tree.Has(path.Join(path.Dir(m.lock), own[1])):
		return m.env + "node " + own[1] + " " + m.install
	case strings.HasPrefix(m.pack, "@yarnpkg"):
		return m.env + "npx --yes -p " + m.pack + " yarn " + m.install
	}
	return "npx --yes " + m.pack + " " + m.install
}

var yarnPath = lazyregexp.New(`(?m)^yarnPath:\s*['"]?(\S+?)['"]?$`)

// nodePrepare records how the packages are installed.
func (p *project) nodePrepare(kept bool) {
	m := p.findManager()
	from, command := Source{File: m.lock}, p.installs(m, kept)
	if m.lock == "" {
		if len(p.node.Dependencies)+len(p.node.DevDependencies) == 0 {
			return
		}
		from, command = p.inPackage("dependencies"), "npm install --no-save --no-package-lock"
	}
	if up := climb(p.dir, path.Dir(m.lock)); m.lock != "" && up != "" {
		command = "cd " + up + " && " + command
	}
	p.values["app.prepare"] = Fact{Key: "app.prepare", Value: command, From: from}
	p.set("network.allow", "npm", from)
	p.makes("node_modules")
}

// climb is the relative path from a folder up to one above it, "" for itself.
func climb(dir, above string) string {
	if dir == "" || dir == above {
		return ""
	}
	rest := strings.Trim(strings.TrimPrefix(dir, strings.TrimPrefix(above, ".")), "/")
	return strings.TrimSuffix(strings.Repeat("../", len(strings.Split(rest, "/"))), "/")
}

// pnpmOf is the major version of pnpm that writes such a lock file.
func pnpmOf(lock string) string {
	m := regexp.MustCompile(`(?m)^lockfileVersion:\s*['"]?(\d+)`).FindStringSubmatch(lock)
	if m != nil && m[1] == "5" {
		return "7"
	}
	if m != nil && m[1] == "6" {
		return "8"
	}
	return "9"
}

// foreign returns the program that a script runs and that is not in the app's container.
func (p *project) foreign(text string) string {
	for _, other := range []string{
		"pnpm", "yarn", "bun", "bunx", "docker", "docker-compose", "turbo", "nx", "lerna", "deno", "wrangler",
		"vercel", "netlify",
	} {
		if p.node.depends(other) == "" && calls(text, other) && !p.keeps(other) {
			return other
		}
	}
	return ""
}

func calls(text, program string) bool {
	return regexp.MustCompile(`(?:^|[\s;&|])` + program + `\s`).MatchString(text + " ")
}

// keeps says whether app.prepare can keep a package manager in node_modules: it is the one of the
// lock file, which is in the folder that is worked in.
func (p *project) keeps(program string) bool {
	m := p.findManager()
	return m.lock != "" && climb(p.dir, path.Dir(m.lock)) == "" && (m.name == program || m.name == "bun" &&
		program == "bunx")
}

// withManager lets a command find the package manager that its script calls.
func (p *project) withManager(text, command string) string {
	name := p.findManager().name
	if name == "npm" || !p.keeps(name) || !calls(text, name) && !(name == "bun" && calls(text, "bunx")) {
		return command
	}
	p.nodePrepare(true)
	return `export PATH="$PWD/` + tools + `/node_modules/.bin:$PATH" && ` + command
}
