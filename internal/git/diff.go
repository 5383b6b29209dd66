package git

import (
	"io"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/diff"
	texts "github.com/go-git/go-git/v5/utils/diff"
)

// Diff writes what changes of a file, in the unified form. A text that is nil is a file
// that is not there.
func Diff(w io.Writer, name string, from, to *string, colours bool) error {
	e := diff.NewUnifiedEncoder(w, diff.DefaultContextLines)
	if colours {
		e.SetColor(diff.NewColorConfig())
	}
	return e.Encode(change{name, from, to})
}

// change is one file as go-git's encoder wants it: a patch, and the one file of it.
type change struct {
	name     string
	from, to *string
}

func (c change) FilePatches() []diff.FilePatch { return []diff.FilePatch{c} }
func (c change) Message() string               { return "" }
func (c change) IsBinary() bool                { return false }

func (c change) Files() (from, to diff.File) {
	if c.from != nil {
		from = side{c.name, *c.from}
	}
	if c.to != nil {
		to = side{c.name, *c.to}
	}
	return from, to
}

// Chunks takes what is not compared in time as removed and added.
func (c change) Chunks() (all []diff.Chunk) {
	const longest = 2 * time.Second
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for _, d := range texts.DoWithTimeout(text(c.from), text(c.to), longest) {
		one := chunk{text: d.Text}
		switch {
		case d.Type > 0:
			one.op = diff.Add
		case d.Type < 0:
			one.op = diff.Delete
		}
		all = append(all, one)
	}
	return all
}

// side is a file before or after.
type side struct{ name, text string }

func (s side) Hash() plumbing.Hash     { return plumbing.ComputeHash(plumbing.BlobObject, []byte(s.text)) }
func (s side) Mode() filemode.FileMode { return filemode.Regular }
func (s side) Path() string            { return s.name }

// chunk is a piece of both texts, or of one.
type chunk struct {
	text string
	op   diff.Operation
}

func (c chunk) Content() string      { return c.text }
func (c chunk) Type() diff.Operation { return c.op }
