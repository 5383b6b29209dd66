// Package prompts carries abl's own role prompts. A project that has a file of
// the same name in its prompts/ directory is played with that one instead.
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
