package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// text returns the default of a key as docs show it, "" for a section.
func (r reference) text(k key) string {
	switch value := r.defaults[k.path]; {
	case r.description[k.path].Default != "":
		return r.description[k.path].Default
	case len(k.below()) > 0:
		return ""
	case value == "":
		return "none"
	default:
		return "`" + value + "`"
	}
}

// takes returns the valid values of a key, in the words of its rules.
func (r reference) takes(k key) string {
	w := r.description[k.path]
	if w.Takes != "" {
		return w.Takes
	}
	if len(w.Values) > 0 {
		return "`" + strings.Join(w.Values, "`, `") + "`"
	}
	all := slices.DeleteFunc([]string{kinds[k.of]}, func(s string) bool { return s == "" })
	for _, rule := range rules {
		if rule.key != "…*" && rule.about(strings.Split(k.path, ".")) && !slices.Contains(all, rule.want) {
			all = append(all, rule.want)
		}
	}
	if len(all) == 0 && k.of.Kind() == reflect.String {
		return "text"
	}
	return strings.Join(all, ", ")
}

// values returns the default of a key with what it takes, "" for a section.
func (r reference) values(k key) string {
	value, takes := r.text(k), r.takes(k)
	if value != "" && takes != "" && value != takes {
		return value + " (" + takes + ")"
	}
	return cmp.Or(value, takes)
}

// markdown returns docs/config.md below its mark.
func (r reference) markdown() string {
	var b strings.Builder
	for _, k := range top.below() {
		s := r.sections[k.path]
		fmt.Fprintf(&b, "\n## `%s`\n\n%s\n\n```yaml\n%s```\n\n", k.path, strings.TrimSpace(s.About), s.Example)
		for _, k := range k.named() {
			name, values := "`"+k.path+"`", r.values(k)
			if k.isUsers() {
				name += " (user)"
			}
			if values != "" {
				fmt.Fprintf(&b, "- %s: %s. %s\n", name, values, r.description[k.path].For)
			}
		}
	}
	return b.String()
}
