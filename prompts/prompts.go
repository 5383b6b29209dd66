// Package prompts contains abl's own prompts: for the two roles, for code-commit, for the
// learner and for `abl spec draft`. A project's prompts/builder.md and prompts/verifier.md
// replace those of the roles. Package roles/call adds the parts that change from call to call.
package prompts

import (
	_ "embed"
	"strings"
)

// The prompt templates. Those of the two roles contain <<PHASE>> and <<ITERATION>>, those of
// the learner contain placeholders such as <<TASK>>.
var (
	//go:embed builder.md
	Builder string
	//go:embed verifier.md
	Verifier string
	// SpecDraft asks the model to turn the prose of a spec into contracts.
	//go:embed spec-draft.md
	SpecDraft string

	// LearnGenerate is the first prompt in prompts.md of a new project.
	//go:embed learn-generate.md
	LearnGenerate string
	// LearnReview asks for a review in five categories.
	//go:embed learn-review.md
	LearnReview string
	// LearnLearnings asks for practices to repeat.
	//go:embed learn-learnings.md
	LearnLearnings string
	// LearnMistakes asks for practices to avoid.
	//go:embed learn-mistakes.md
	LearnMistakes string
	// LearnImprove asks for a better prompt.
	//go:embed learn-improve.md
	LearnImprove string
)

// The parts of the prompts of code-commit. A project may replace CommitStructure with its own
// text.
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

// CommitInstructions returns the instructions for changing files. protected lists the paths
// that the model must not change.
func CommitInstructions(protected []string) string {
	return strings.ReplaceAll(commitInstructions, "<<PROTECTED>>", "+ "+strings.Join(protected, "\n+ "))
}
