package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// text returns the default of a key as docs show it, "" for a section and for a key without one.
func (r reference) text(k key) string {
	switch value, words := r.defaults[k.path], r.description[k.path].Default; {
	case words == "none" || words == "" && (value == "" || len(k.below()) > 0):
		return ""
	case words != "":
		return words
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

// values returns the default of a key with its valid values in parentheses, "" for a section.
func (r reference) values(k key) string {
	value, takes := r.text(k), r.takes(k)
	obvious := k.of == reflect.TypeFor[Duration]() || k.of == reflect.TypeFor[Size]() || k.of.Kind() == reflect.Bool
	if obvious && strings.HasPrefix(takes, "a ") || takes == "a number" || takes == "`true`" || takes == "0 or more" {
		takes = "" // the default shows them
	}
	if takes != "" && takes != value {
		value = strings.TrimSpace(value + " (" + takes + ")")
	}
	return value
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
			if values == "" && len(k.below()) > 0 {
				continue // a section
			}
			if values != "" {
				values += ". "
			}
			fmt.Fprintf(&b, "- %s: %s%s\n", name, values, r.description[k.path].For)
		}
	}
	return b.String()
}
