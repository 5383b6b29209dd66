package detect

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// bins are the programs of package.json, by name.
func (m manifest) bins() map[string]string {
	all := map[string]string{}
	switch bin := m.Bin.(type) {
	case string:
		all[path.Base(m.Name)] = bin
	case map[string]any:
		for name, file := range bin {
			if text, ok := file.(string); ok {
				all[name] = text
			}
		}
	}
	return all
}

// nodePrograms records the programs that package.json declares, or that it is a library.
func (p *project) nodePrograms() {
	m := p.node
	bins := m.bins()
	for _, name := range slices.Sorted(maps.Keys(bins)) {
		file, from := path.Clean(bins[name]), p.inPackage("bin."+name)
		if _, single := m.Bin.(string); single {
			from = p.inPackage("bin")
		}
		p.program("a program", from)
		switch {
		case p.has(file):
			p.commands = append(p.commands, Fact{Key: "app.command", Value: `node "$ABL_SRC/` + file + `"`, From: from})
		case m.script("build") != "":
			command := `npm --prefix "$ABL_SRC" run --silent build >&2 && node "$ABL_SRC/` + file + `"`
			p.commands = append(p.commands, Fact{Key: "app.command", Value: command, From: from, Note: "scripts.build makes " +
				file})
			p.makes(strings.Split(file, "/")[0])
		}
	}
	if len(bins) > 0 || len(p.starts) > 0 || p.image != nil || len(p.blocks) > 0 && len(p.serves) > 0 {
		return
	}
	there := func(file string) bool {
		return file != "" && (p.has(file) || p.has(file+".js") || p.has(path.Join(file, "index.js")) ||
			m.script("build") != "")
	}
	for _, place := range []string{"main", "module", "exports"} {
		is := map[string]bool{"main": there(m.Main), "exports": m.Exports != nil, "module": there(m.Module)}[place]
		if is && p.image == nil {
			p.serves, p.ports = nil, nil // of parts that are no program
			p.library(p.inPackage(place), `cd "$ABL_SRC" && node`, "node runs what a test passes by -e")
			return
		}
	}
}

// library records that the repository is a library, which tests use by its interpreter.
func (p *project) library(from Source, command, note string) {
	p.program("a library", from)
	if command != "" {
		p.commands = append(p.commands, Fact{Key: "app.command", Value: command, From: from, Note: "a library: " + note})
	}
}

var watching = regexp.MustCompile(`--watch(?:All)?(?:\s|$)|ng test|(?:^|\s)-w(?:\s|$)`)

// nodeChecks records the scripts that check the source.
func (p *project) nodeChecks() {
	for _, c := range []struct {
		name, description string
		scripts           []string
	}{
		{"typecheck", "type check", []string{"typecheck", "type-check", "check-types", "types:check", "tsc"}},
		{"lint", "lint", []string{"lint"}},
		{"test", "tests", []string{"test:unit", "test"}},
	} {
		for _, script := range c.scripts {
			text := p.node.script(script)
			if text == "" {
				continue
			}
			from := p.inPackage("scripts." + script)
			if watching.MatchString(text) {
				p.say("%s watches files and does not end: it is no command for the Builder", from)
				continue
			}
			if other := p.foreign(text); other != "" {
				p.say("%s runs %s, which is not in the Builder's container", from, other)
				continue
			}
			command := "npm run " + script
			if strings.Contains(text, "react-scripts test") {
				command = "CI=true npm run " + script // it watches files without CI
			}
			if script == "test" {
				command = strings.Replace(command, "npm run test", "npm test", 1)
			}
			command = p.withManager(text, command)
			p.check(c.name, command, c.description, from)
			break
		}
	}
}
