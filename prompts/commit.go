package prompts

import (
	_ "embed"
	"strings"
)

// The parts of what code-commit asks. A project may put its own text in the
// place of CommitStructure.
var (
	//go:embed commit-structure.md
	CommitStructure string
	//go:embed commit-instructions.md
	commitInstructions string
	//go:embed commit-initial.md
	CommitInitial string
	//go:embed commit-repair.md
	CommitRepair string
	//go:embed consistency.md
	Consistency string
)

// CommitInstructions say how files are changed and which must not be.
func CommitInstructions(protected []string) string {
	return strings.ReplaceAll(commitInstructions, "<<PROTECTED>>", "+ "+strings.Join(protected, "\n+ "))
}
