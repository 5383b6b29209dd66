package agent

// Message is one thing that an agent said or did, as its own output tells it: it proves
// nothing, and no byte of it is safe to show.
type Message struct {
	Kind   MessageKind
	Text   string // what was said; of a tool call what it does, in a line
	Detail string // of a tool call what it was given, of a result what came back; "" for nothing more
}

// MessageKind tells messages apart.
type MessageKind string

// The kinds of messages.
const (
	Said     MessageKind = "said"   // words of the agent's own
	Called   MessageKind = "call"   // a tool was called
	Returned MessageKind = "result" // and what it gave back
)
