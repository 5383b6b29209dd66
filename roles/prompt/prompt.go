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
	"strings"
	"time"
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
	Report    string // path of this call's run report, relative to the workspace; see ReportPath
	Last      string // the last verdict of this phase: "", "fail", "unverified" or "pass"

	App    *helper.App // how the system is started; for the Builder, nil without an app section
	AppURL string      // where the system answers; for the Verifier
	Hosts  []string    // hosts besides the model that the role may reach

	MapLines []string // of the role's own workspace, as RenderMap has them
	MapTotal int      // files in it, shown or not
	Failed   []failedspecs.Entry
	Stalled  string   // what to tell the Builder when its last iterations moved nothing, mostly ""
	Tests    []string // names of the Verifier's files and tests, which no failed spec carries to the Builder
	Missing  []string // what the attempt before this one did not leave, one sentence each
	Nonce    string   // random and fresh; marks where quoted data begins and ends
}

// minNonce keeps a mark from being guessed or met by chance.
const minNonce = 16

// Build returns the prompt. It fails when the template or the input cannot give
// a true one: a placeholder that is missing or unknown, a spec of another
// phase, text that is not UTF-8.
func Build(in Input) (string, error) {
	if err := in.check(); err != nil {
		return "", fmt.Errorf("cannot assemble the %s's prompt: %w", in.Role.Name, err)
	}
	head, call, err := split(in.Template)
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

func (in Input) check() error {
	switch {
	case in.Role.Name == "":
		return errors.New("internal error: a prompt for no role")
	case in.Phase < 1 || in.Iteration < 1 || in.Attempt < 1 || in.Step < 1:
		return errors.New("internal error: phase, iteration, attempt and step count from 1")
	case len(in.Nonce) < minNonce:
		return errors.New("internal error: the nonce is too short")
	case in.Report == "":
		return errors.New("internal error: the call's report has no name")
	case !utf8.ValidString(in.Template):
		return errors.New("its template is not UTF-8")
	case !utf8.ValidString(in.ProjectMD):
		return errors.New("project.md is not UTF-8")
	case len(in.Specs) != in.Phase:
		return fmt.Errorf("internal error: phase %d needs the specs of phases 1 to %d, %d are there", in.Phase, in.Phase, len(in.Specs))
	}
	for i, s := range in.Specs {
		if s.Number != i+1 {
			return fmt.Errorf("internal error: spec %d is of phase %d", i+1, s.Number)
		}
	}
	return nil
}

// ReportPath is the path of a call's run report, relative to the workspace:
// builder_reports/phase1_v2_20060102T150405Z.md.
func ReportPath(role roles.Role, phase, iteration int, at time.Time) string {
	return fmt.Sprintf("%s/phase%d_v%d_%s.md", role.Reports, phase, iteration, at.UTC().Format("20060102T150405Z"))
}
