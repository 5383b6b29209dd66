package prompts

import _ "embed"

// The prompts of the learner, templates with words like <<TASK>>.
var (
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
