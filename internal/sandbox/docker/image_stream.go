package docker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// message is one of the JSON documents an engine sends while it works on an
// image. Builds speak in Stream, pulls and loads in Status.
type message struct {
	Stream string `json:"stream"`
	Status string `json:"status"`
	ID     string `json:"id"`
	Error  string `json:"error"`
	Detail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
}

// follow reads an engine's messages to their end, hands on each line and
// gives the error the engine reports: the HTTP status said OK long before.
func follow(body io.ReadCloser, progress func(string)) (err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	say := func(line string) {
		if line != "" && progress != nil {
			progress(line)
		}
	}
	in := json.NewDecoder(body)
	var rest string
	for {
		var m message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			say(rest)
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the engine's answer: %w", err)
		}
		if m.failure() != "" {
			say(rest)
			return errors.New(m.failure())
		}
		rest = lines(rest+m.Stream, say)
		say(m.layer())
	}
}

// failure is what the engine calls its error, in either of two fields.
func (m message) failure() string {
	if m.Detail.Message != "" {
		return m.Detail.Message
	}
	return m.Error
}

// layer is a pull's line: the moving bytes are left out, the states remain.
func (m message) layer() string {
	if m.Status == "" || m.ID == "" {
		return m.Status
	}
	return m.ID + ": " + m.Status
}

// lines hands on every complete line and gives back the beginning of the next.
// A program that draws a bar returns to the line's start, which begins a line here.
func lines(text string, say func(string)) (rest string) {
	for {
		i := strings.IndexAny(text, "\r\n")
		if i < 0 {
			return bounded(text, say)
		}
		say(text[:i])
		text = text[i+1:]
	}
}

// longLine bounds what is kept of a line that does not end, in bytes.
const longLine = 64 << 10

func bounded(text string, say func(string)) string {
	if len(text) < longLine {
		return text
	}
	say(text)
	return ""
}
