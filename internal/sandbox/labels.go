package sandbox

// Labels that abl puts on everything it makes on an engine. Sweeping goes by
// them and by nothing else.
const (
	LabelProject  = "abl.project"  // the project's id from state.json
	LabelKind     = "abl.kind"     // role, app, service, holder, network, volume, helper
	LabelPhase    = "abl.phase"    // number
	LabelRole     = "abl.role"     // builder or verifier
	LabelCall     = "abl.call"     // <call>.<attempt>, the idempotency key
	LabelDeadline = "abl.deadline" // Unix seconds after which it is an orphan
)
