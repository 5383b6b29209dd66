// Package prompts carries abl's own prompts: of the two roles, of code-commit, of the
// learner and of spec draft. A project that has builder.md or verifier.md in its prompts/
// directory is played with that one instead. What differs from call to call is put in
// elsewhere.
package prompts

import (
	_ "embed"
	"strings"
)

// Templates: those of the two roles have <<PHASE>> and <<ITERATION>>, those of the learner
// words like <<TASK>>.
var (
	//go:embed builder.md
	Builder string
	//go:embed verifier.md
	Verifier string
	// SpecDraft asks for a spec whose prose is made contracts of.
	//go:embed spec-draft.md
	SpecDraft string

	// LearnGenerate is what prompts.md of a new project begins with.
	//go:embed learn-generate.md
	LearnGenerate string
	// LearnReview asks for a review in five categories.
	//go:embed learn-review.md
	LearnReview string
	// LearnLearnings asks for what is worth doing again.
	//go:embed learn-learnings.md
	LearnLearnings string
	// LearnMistakes asks for what is not.
	//go:embed learn-mistakes.md
	LearnMistakes string
	// LearnImprove asks for a better prompt.
	//go:embed learn-improve.md
	LearnImprove string
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
