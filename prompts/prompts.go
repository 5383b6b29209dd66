// Package prompts carries abl's own prompts: of the two roles, of code-commit, of the
// learner and of spec draft. A project that has builder.md or verifier.md in its prompts/
// directory is played with that one instead. What differs from call to call is put in
// elsewhere.
package prompts

import _ "embed"

// Builder is the Builder's prompt, a template with <<PHASE>> and <<ITERATION>>.
//
//go:embed builder.md
var Builder string

// Verifier is the Verifier's prompt, a template with <<PHASE>> and <<ITERATION>>.
//
//go:embed verifier.md
var Verifier string

// SpecDraft asks for a spec whose prose is made contracts of.
//
//go:embed spec-draft.md
var SpecDraft string
