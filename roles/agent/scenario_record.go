package agent

// Record is one line of JSON on the scripted agent's standard output. Lines
// that are no Record (a raw step writes them) are to be passed over.
type Record struct {
	Type string `json:"type"` // one of the Record constants

	// With RecordInit.
	Role      string `json:"role,omitempty"`
	Phase     int    `json:"phase,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	Attempt   int    `json:"attempt,omitempty"`
	Session   string `json:"session,omitempty"`

	Tool string `json:"tool,omitempty"` // with RecordTool: the step's key, as write or run
	Text string `json:"text,omitempty"` // what is said or printed; with RecordTool the path or the command

	// With RecordResult, which is the last line of a call that ended properly.
	Status   string        `json:"status,omitempty"`  // StatusSuccess or StatusError
	Error    string        `json:"error,omitempty"`   // why it is an error
	Trouble  End           `json:"trouble,omitempty"` // EndAway or EndLogin: whose fault the error is
	Usage    []ScriptUsage `json:"usage,omitempty"`
	Requests *int64        `json:"requests,omitempty"` // model requests, over all models
}

// The types of record.
const (
	RecordInit    = "init"
	RecordMessage = "message"
	RecordTool    = "tool"
	RecordOutput  = "output"
	RecordResult  = "result"
)

// What a RecordResult can say.
const (
	StatusSuccess = "success"
	StatusError   = "error"
)
