package orchestrator

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/wording"
)

// contractOf is what an entry's contract is known by: its id, or its words.
func contractOf(e failedspecs.Entry) string {
	if e.Contract != "" {
		return e.Contract
	}
	return wording.Cut(wording.OneLine(e.Spec), 80)
}

// failedIn are the contracts that an attempt failed, sorted.
func failedIn(a Attempt) []string { return slices.Sorted(maps.Keys(observed(a))) }

// observed is what was observed of each contract that failed, sorted.
func observed(a Attempt) map[string][]string {
	all := map[string][]string{}
	for _, e := range a.Failed {
		id, o := contractOf(e), observation(e.Observed)
		if !slices.Contains(all[id], o) {
			all[id] = append(all[id], o)
		}
	}
	for _, o := range all {
		slices.Sort(o)
	}
	return all
}

// chance is what differs from one run to the next, in order.
var chance = []struct {
	what *regexp.Regexp
	mark string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?\b`), "<time>"},
	{regexp.MustCompile(`\b(?:mon|tue|wed|thu|fri|sat|sun), \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt\b`), "<time>"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:ms|µs|s|seconds?|milliseconds?)\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<id>"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":<port>"},
	{regexp.MustCompile(`\b\d{6,}\b`), "<number>"},
	{regexp.MustCompile(`\b[0-9a-z_]{8,}\b`), "<id>"}, // when it is mixed
}

// observation is what was observed without what differs by chance from one run
// to the next: times, generated ids, long numbers, ports, case and spaces. Short
// numbers, such as a status, stay.
func observation(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, c := range chance {
		text = c.what.ReplaceAllStringFunc(text, func(found string) string {
			if c.mark == "<id>" && !mixed(found) {
				return found
			}
			return c.mark
		})
	}
	return text
}

// mixed reports letters with two digits at least among them, as no word has them.
func mixed(word string) bool {
	digits := strings.Count(word, "-") // of a UUID, which need not have any
	letters := 0
	for _, r := range word {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r != '_':
			letters++
		}
	}
	return digits >= 2 && letters > 0
}
