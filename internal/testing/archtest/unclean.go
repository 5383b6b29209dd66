package archtest

// unclean lists the directories with words that words_test.go refuses. It only shrinks.
const unclean = `
cmd/abl
cmd/abl-cmd
cmd/abl-cmd/internal/probe
cmd/internal/phase
cmd/internal/view
images
images/context/gemini
images/context/go
internal/audit
internal/broker
internal/config
internal/detect
internal/gateway
internal/gateway/meter
internal/gateway/sidecar
orchestrator
orchestrator/codecommit
orchestrator/evidence
orchestrator/learner
orchestrator/report
roles
roles/agent
roles/boundary
roles/environment
roles/prompt
roles/retry
`
