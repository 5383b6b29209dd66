package scaffold

import "fmt"

// Kind says what an Op does.
type Kind string

// The kinds of Op.
const (
	Write Kind = "write" // a new file
	Add   Kind = "add"   // lines at the end of a file, which is made when it is missing
	Keep  Kind = "keep"  // there already
	Note  Kind = "note"  // something that the person should know
)

// Op is one step of a plan.
type Op struct {
	Kind  Kind     `json:"do"`
	Path  string   `json:"path"`            // slash-separated, relative to the project
	Data  []byte   `json:"-"`               // with Write
	Lines []string `json:"lines,omitempty"` // with Add
	Text  string   `json:"text,omitempty"`  // with Note
}

// String is the line that a person reads.
func (o Op) String() string {
	switch o.Kind {
	case Write:
		return "write " + o.Path
	case Add:
		return fmt.Sprintf("add %d lines to %s", len(o.Lines), o.Path)
	case Keep:
		return "keep " + o.Path
	}
	return o.Text
}
