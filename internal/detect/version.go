package detect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/internal/toolchain"
	"abl/internal/wording"
)

// wanted is a version, or a range of versions, that a file asks for.
type wanted struct {
	text string
	from Source
}

// tool describes a language in abl's image.
type tool struct {
	title string
	image string // the version in the image, "" without one
}

var imageTools = map[string]tool{
	"node": {"Node.js", "22"}, "python": {"Python", "3.11"}, "rust": {title: "Rust"}, "java": {title: "Java"},
}

// choose records the version of a tool that fits what the files want, the most trusted file first.
func (p *project) choose(name string, all []wanted) {
	all = slices.DeleteFunc(all, func(w wanted) bool { return !strings.ContainsAny(w.text, "0123456789") })
	if len(all) == 0 {
		return
	}
	t, note := imageTools[name], ""
	for _, w := range all {
		if fit := fitting(name, w.text); len(fit) > 0 {
			best := fit[len(fit)-1]
			if slices.Contains(fit, t.image) {
				best = t.image // it needs no layer of its own
			}
			p.note("toolchain."+name, best, w.from, note)
			return
		}
		note = fmt.Sprintf("%s asks for %s, which abl does not have", all[0].from, all[0].text)
	}
	if best := next(name, all[0].text); best != "" {
		p.note("toolchain."+name, best, all[0].from, "asks for "+all[0].text+", which abl does not have")
		return
	}
	why := fmt.Sprintf("%s asks for %s %s, and abl has %s (docs/toolchains.md)", all[0].from, t.title,
		wording.Cut(all[0].text, 40), wording.OneOf(toolchain.Lines(name)))
	if t.image != "" {
		why += "; without this key it is " + t.image
	}
	p.ask("toolchain."+name, why)
}

// next returns the oldest Python that is newer than a plain version, "" for none and for other tools: without a
// version of toolchain, Python has no pip.
func next(name, text string) string {
	pin := numbers(capture(`^v?(\d+\.\d+)[.\d]*$`, text))
	for _, line := range fitting("python", ">=3") {
		if name == "python" && pin != nil && slices.Compare(numbers(line), pin) > 0 {
			return line
		}
	}
	return ""
}

// fitting returns the versions of a tool that satisfy a range, sorted.
func fitting(name, text string) []string {
	lines := toolchain.Lines(name)
	slices.SortFunc(lines, func(a, b string) int { return slices.Compare(numbers(a), numbers(b)) })
	return slices.DeleteFunc(lines, func(short string) bool {
		t, _ := toolchain.Find(name, short)
		return !satisfies(numbers(t.Version), text)
	})
}

// numbers returns the numbers of a version.
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

const comparator = `(\^|~=|~>|~|>=|<=|===?|!=|>|<)?\s*v?(\d+(?:\.(?:\d+|[xX*]))*)(?:[-+][\w.]+)?`

// satisfies reports whether a version is in a range of npm, Python, Poetry or Composer. No semver
// library reads all four, and in a Debian package the last number of a Python is unknown.
func satisfies(version []int, text string) bool {
	text = strings.ReplaceAll(strings.TrimSpace(text), "lts/*", "22")
	for part := range strings.SplitSeq(strings.ReplaceAll(text, "||", "|"), "|") {
		if part = strings.TrimSpace(part); part == "" || part == "*" || within(version, part) {
			return true
		}
	}
	return false
}

// within reports whether a version satisfies all comparators of a range.
func within(version []int, part string) bool {
	if low, high, ok := strings.Cut(part, " - "); ok {
		return within(version, ">="+low) && within(version, "<="+high)
	}
	found := captures(comparator, part)
	for _, m := range found {
		if want := numbers(strings.ToLower(m[2])); !compare(version, m[1], want) { // numbers ends at an x or *
			return false
		}
	}
	return len(found) > 0
}

// compare applies a comparator. It ignores the numbers that only one of the versions has.
func compare(version []int, operator string, want []int) bool {
	sameStart := func(n int) bool {
		n = min(n, len(want), len(version))
		return slices.Equal(version[:n], want[:n])
	}
	n := min(len(version), len(want))
	order := slices.Compare(version[:n], want[:n])
	switch operator {
	case "^":
		return order >= 0 && sameStart(1)
	case "~":
		return order >= 0 && sameStart(2)
	case "~=", "~>":
		return order >= 0 && sameStart(max(1, len(want)-1))
	case ">=":
		return order >= 0
	case ">":
		return order > 0
	case "<=":
		return order <= 0
	case "<":
		return order < 0
	case "!=":
		return order != 0
	}
	if version[0] > 3 {
		return sameStart(1) // Node.js: all versions with this major version
	}
	return sameStart(2)
}

// pinned returns the versions in files, separated by blanks, that contain only a version, and the
// one in .tool-versions under a name, which is a regular expression.
func (p *project) pinned(name, files string) (all []wanted) {
	for file := range strings.FieldsSeq(files) {
		at := p.nearest(file)
		if text := capture(`^\s*(.*\S)`, p.tree.Text(at)); text != "" {
			all = append(all, wanted{text, Source{File: at}})
		}
	}
	at := p.nearest(".tool-versions")
	key := capture(`(?m)^(`+name+`)\s`, p.tree.Text(at))
	return append(all, wanted{capture(`(?m)^`+name+`\s+(\S+)`, p.tree.Text(at)), Source{at, key}})
}
