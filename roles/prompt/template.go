package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The two places of a template that abl fills in.
const (
	placePhase     = "<<PHASE>>"
	placeIteration = "<<ITERATION>>"
)

// Check tells whether a template can be used: it names both places, and no
// place that abl does not know.
func Check(template string) error {
	_, _, err := split(template)
	return err
}

// split divides a template into what is the same in every call and what is not:
// the second part begins with the heading above the first place, or with the
// place's own line when there is no heading above it.
func split(template string) (stable, call string, err error) {
	places := regexp.MustCompile(`<<[A-Za-z_]+>>`).FindAllStringIndex(template, -1)
	for _, at := range places {
		if p := template[at[0]:at[1]]; p != placePhase && p != placeIteration {
			return "", "", fmt.Errorf("line %d of its template has %s, and abl fills in only %s and %s",
				1+strings.Count(template[:at[0]], "\n"), p, placePhase, placeIteration)
		}
	}
	for _, want := range []string{placePhase, placeIteration} {
		if !strings.Contains(template, want) {
			return "", "", errors.New("its template lacks " + want)
		}
	}
	at := sectionStart(template, places[0][0])
	return template[:at], template[at:], nil
}

// sectionStart is where the last heading at or before pos begins, or pos's line.
// Lines within a fenced block are no headings.
func sectionStart(text string, pos int) int {
	start, at, fenced := -1, 0, false
	for line := range strings.Lines(text) {
		if at > pos {
			break
		}
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if strings.HasPrefix(line, "#") && !fenced {
			start = at
		}
		at += len(line)
	}
	if start >= 0 {
		return start
	}
	return strings.LastIndexByte(text[:pos], '\n') + 1
}

// inject fills in a template in one pass: nothing that it writes is read again.
func inject(template string, phase, iteration int) string {
	return strings.NewReplacer(
		placePhase, strconv.Itoa(phase),
		placeIteration, strconv.Itoa(iteration),
	).Replace(template)
}
