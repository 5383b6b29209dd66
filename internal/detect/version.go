package detect

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
	"abl/internal/toolchain"
	"abl/internal/wording"
)

// asked is a version that a file asks for: a number, or a range of them.
type asked struct {
	text string
	from Source
}

// names are the languages as people write them, and the versions of abl's own image.
var names = map[string]string{"node": "Node.js", "python": "Python", "go": "Go"}

var imageHas = map[string]string{"node": "22", "python": "3.11", "go": ""}

// choose records the version of a tool that fits what the files ask for, the most trusted first.
func (p *project) choose(tool string, all []asked) {
	all = slices.DeleteFunc(all, func(a asked) bool { return !strings.ContainsAny(a.text, "0123456789") })
	if len(all) == 0 {
		return
	}
	for i, a := range all {
		fit := fitting(tool, a.text)
		if len(fit) == 0 {
			continue
		}
		note := ""
		if i > 0 {
			note = fmt.Sprintf("%s asks for %s, which abl does not have", all[0].from, all[0].text)
		}
		p.note("toolchain."+tool, p.best(tool, fit), a.from, note)
		return
	}
	why := fmt.Sprintf("%s asks for %s %s, and abl has %s (docs/toolchains.md)", all[0].from, names[tool],
		wording.Cut(all[0].text, 40),
		wording.OneOf(toolchain.Lines(tool)))
	if have := imageHas[tool]; have != "" {
		why += "; without this key it is " + have
	}
	p.ask("toolchain."+tool, why)
}

// best prefers the version of abl's image, which needs no layer of its own.
func (p *project) best(tool string, fit []string) string {
	if have := imageHas[tool]; slices.Contains(fit, have) {
		return have
	}
	return fit[len(fit)-1]
}

// fitting returns the versions of a tool that satisfy a text, sorted.
func fitting(tool, text string) (fit []string) {
	lines := toolchain.Lines(tool)
	slices.SortFunc(lines, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
	for _, short := range lines {
		t, _ := toolchain.Find(tool, short)
		if satisfies(numbers(t.Version), text) {
			fit = append(fit, short)
		}
	}
	return fit
}

func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}

var comparator = lazyregexp.New(`(\^|~=|~>|~|>=|<=|===?|!=|>|<)?\s*v?(\d+(?:\.(?:\d+|[xX*]))*)(?:[-+][\w.]+)?`)

// satisfies says whether a version is in a range as npm, Python, Poetry and Composer write them. A
// range that is a plain number stands for all versions that begin with it.
func satisfies(version []int, text string) bool {
	text = strings.ReplaceAll(strings.TrimSpace(text), "lts/*", "22")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "||", "|"), "|") {
		if part = strings.TrimSpace(part); part == "" || part == "*" || within(version, part) {
			return true
		}
	}
	return false
}

func within(version []int, part string) bool {
	if low, high, ok := strings.Cut(part, " - "); ok {
		return within(version, ">="+low) && within(version, "<="+high)
	}
	found := comparator().FindAllStringSubmatch(part, -1)
	for _, m := range found {
		want := numbers(strings.TrimRight(strings.NewReplacer("x", "", "X", "", "*", "").Replace(m[2]), "."))
		short := version[:min(len(version), len(want))] // 3.13 has no patch: Debian decides
		order := slices.Compare(short, want[:min(len(short), len(want))])
		fits := false
		switch m[1] {
		case "^":
			fits = order >= 0 && version[0] == want[0]
		case "~":
			fits = order >= 0 && slices.Equal(short[:min(2, len(short))], want[:min(2, len(want))])
		case "~=", "~>":
			lead := max(1, len(want)-1)
			fits = order >= 0 && slices.Equal(short[:min(lead, len(short))], want[:min(lead, len(short))])
		case ">=":
			fits = order >= 0
		case ">":
			fits = order > 0
		case "<=":
			fits = order <= 0
		case "<":
			fits = order < 0
		case "!=":
			fits = order != 0
		default:
			fits = sameLine(version, want)
		}
		if !fits {
			return false
		}
	}
	return len(found) > 0
}

// sameLine compares a pinned version with one that abl has: the last number may differ.
func sameLine(version, want []int) bool {
	lead := 2
	if version[0] > 3 { // of Node.js the major version alone is a line
		lead = 1
	}
	n := min(lead, len(want), len(version))
	return slices.Equal(version[:n], want[:n])
}

// pinned returns the versions in files that hold nothing else, and in .tool-versions.
func (p *project) pinned(tool string, files ...string) (all []asked) {
	for _, name := range files {
		at := p.nearest(name)
		text, _, _ := strings.Cut(strings.TrimSpace(p.tree.Text(at)), "\n")
		if at != "" && text != "" {
			all = append(all, asked{strings.TrimSpace(text), Source{File: at}})
		}
	}
	at := p.nearest(".tool-versions")
	if m := regexp.MustCompile(`(?m)^(` + tool + `)\s+(\S+)`).FindStringSubmatch(p.tree.Text(at)); m != nil {
		all = append(all, asked{m[2], Source{at, m[1]}})
	}
	return all
}

// fromImage returns the version of the image that a Dockerfile begins with.
func (p *project) fromImage(tools ...string) (all []asked) {
	file := p.at(p.first("Dockerfile", "Containerfile"))
	for _, i := range readImage(file, p.tree.Text(file)).bases {
		name, version := baseOf(strings.Fields(i.args)[0])
		if slices.Contains(tools, name) && version != "" {
			all = append(all, asked{version, Source{file, line(i.line)}})
		}
	}
	return all
}

func (p *project) nodeVersion() {
	all := p.pinned("(?:nodejs|node)", ".nvmrc", ".node-version")
	all = append(all, asked{p.node.Engines["node"], p.inPackage("engines.node")})
	p.choose("node", append(all, p.fromImage("node")...))
}

func (p *project) pythonVersion() {
	all := p.pinned("python", ".python-version")
	if text := p.text("runtime.txt"); text != "" {
		all = append(all, asked{strings.TrimPrefix(strings.TrimSpace(text), "python-"), p.src("runtime.txt", "")})
	}
	py := p.python.pyproject
	all = append(all, asked{py.Project.RequiresPython, p.src("pyproject.toml", "project.requires-python")})
	if py.Tool.Poetry != nil {
		version, _ := py.Tool.Poetry.Dependencies["python"].(string)
		all = append(all, asked{version, p.src("pyproject.toml", "tool.poetry.dependencies.python")})
	}
	if p.choose("python", append(all, p.fromImage("python")...)); p.values["toolchain.python"].Value == "" &&
		p.python.programs != "" &&
		!slices.ContainsFunc(p.blocks, func(o Open) bool { return o.Key == "toolchain.python" }) {
		p.note("toolchain.python", "3.13", p.values["app.prepare"].From, "no file names a version")
	}
}

var goLine = lazyregexp.New(`(?m)^go (\d+\.\d+)`)

// goVersion takes the line of go.mod, or the newest Go if that line is older than all that abl has:
// a newer Go compiles older modules.
func (p *project) goVersion() {
	m := goLine().FindStringSubmatch(p.text("go.mod"))
	if m == nil {
		return
	}
	lines, from := toolchain.Lines("go"), p.src("go.mod", "go")
	switch newest := lines[len(lines)-1]; {
	case slices.Contains(lines, m[1]):
		p.set("toolchain.go", m[1], from)
	case slices.Compare(numbers(m[1]), numbers(newest)) < 0:
		p.note("toolchain.go", newest, from, "asks for "+m[1]+" or newer")
	default:
		p.ask("toolchain.go", fmt.Sprintf("%s asks for Go %s: abl has %s", from, m[1], strings.Join(lines, ", ")))
	}
}
