// Package prompt assembles what a role is told in one call, the map of its files
// included. It is pure: nothing here reads a file or knows an agent.
//
// What stays the same from call to call comes first, because models' prompt
// caches pay for equal beginnings: the role's prompt up to its section about
// this call, the project's description, the specs, the contracts, how the system
// is started, the commands. Then comes what changes: the files, the rest of the
// role's prompt with the phase and the iteration, the state of the session, the
// failed specs.
package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/spec"
	"abl/roles"
)

// Input is all that a prompt is made of.
type Input struct {
	Role      roles.Role
	Template  string // the role's prompt, with <<PHASE>> and <<ITERATION>>
	ProjectMD string // the person's description of the project
	Specs     []spec.Spec
	Commands  []helper.Command // what abl-cmd runs by name for this role

	Phase     int
	Iteration int // within the round
	Attempt   int
	Step      int    // over all rounds
	Report    string // path of this call's run report, relative to the workspace
	Last      string // the last verdict of this phase: "", "fail", "unverified" or "pass"

	App      *helper.App        // how the system is started; for the Builder, nil without an app section
	Services []roles.ServiceBox // its services; for the Builder
	Adopted  bool               // the working directory is a clone of a person's repository
	AppURL   string             // where the system answers; for the Verifier
	Hosts    []string           // hosts besides the model that the role may reach

	Unprepared string // why what abl did about dependencies failed, before a Builder's call; "" when it did not

	Map     Map // of the role's own workspace
	Failed  []failedspecs.Entry
	Stalled string   // what to tell the Builder when its last iterations moved nothing, mostly ""
	Tests   []string // names of the Verifier's files and tests, which no failed spec carries to the Builder
	Missing []string // what the attempt before this one did not leave, one sentence each
	Nonce   string   // random and fresh; marks where quoted data begins and ends
}

// Build returns the prompt. It fails where the role's own prompt or the description
// cannot be used: a placeholder that is missing or unknown, text that is not UTF-8.
func Build(in Input) (string, error) {
	head, call, err := split(in.Template)
	switch {
	case !utf8.ValidString(in.Template):
		err = errors.New("its template is not UTF-8")
	case !utf8.ValidString(in.ProjectMD):
		err = errors.New("project.md is not UTF-8")
	}
	if err != nil {
		return "", fmt.Errorf("cannot assemble the %s's prompt: %w", in.Role.Name, err)
	}
	sections := []string{
		head, projectSection(in), specsSection(in), contractsSection(in), systemSection(in), commandsSection(in), mapSection(in),
		inject(call, in.Phase, in.Iteration), sessionSection(in), failedSection(in), missingSection(in),
	}
	var b strings.Builder
	for _, s := range sections {
		if s = strings.TrimSpace(s); s != "" {
			b.WriteString(s + "\n\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// The two places of a template that abl fills in.
const (
	placePhase     = "<<PHASE>>"
	placeIteration = "<<ITERATION>>"
)

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
