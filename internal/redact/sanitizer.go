package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Sanitizer knows the secrets that nobody may see. A nil Sanitizer knows none; it
// makes text safe all the same.
type Sanitizer struct {
	mu      sync.Mutex
	secrets []string
	knows   atomic.Pointer[Redactor]
}

// NewSanitizer is a Sanitizer that knows the secrets of an environment: of variables,
// given as NAME=value, whose name says that they are secret.
func NewSanitizer(environ []string) *Sanitizer {
	vars := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	secrets, _ := Secrets(vars, false)
	o := &Sanitizer{}
	o.Hide(secrets...)
	return o
}

// Hide adds secrets to those that are taken out from now on. Those shorter than
// Shortest cannot be.
func (o *Sanitizer) Hide(secrets ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := len(o.secrets)
	for _, s := range secrets {
		if !slices.Contains(o.secrets, s) {
			o.secrets = append(o.secrets, s)
		}
	}
	if len(o.secrets) == before {
		return
	}
	r, _ := New(o.secrets...)
	o.knows.Store(r)
}

var none = &Redactor{}

func (o *Sanitizer) redactor() *Redactor {
	if o == nil {
		return none
	}
	return cmp.Or(o.knows.Load(), none)
}

// Redact takes the secrets out of text that stays within abl, before it is
// parsed or cut; it is not safe to show.
func (o *Sanitizer) Redact(s string) string { return o.redactor().String(s) }

// Bytes is Redact for bytes; without a secret in them it returns p itself.
func (o *Sanitizer) Bytes(p []byte) []byte { return o.redactor().Bytes(p) }

// Whole is text of several lines, however long, safe to keep in a file.
func (o *Sanitizer) Whole(s string) string { return Whole(o.Redact(s)) }

// String is text of several lines, safe to show.
func (o *Sanitizer) String(s string) string { return String(o.Redact(s)) }

// Line is text on one line, safe to show: no part of it can pass for a line of
// abl's own.
func (o *Sanitizer) Line(s string) string { return Line(o.Redact(s)) }

// JSON is v as one line of JSON. Every string in it is safe, as it stands there
// and once it is decoded.
func (o *Sanitizer) JSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	return append(o.document(data), '\n'), nil
}

// Clean makes every text in what v points to safe to keep, as far as JSON has it.
func (o *Sanitizer) Clean(v any) error {
	data, err := o.JSON(v)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return nil
}

// document makes the strings of a valid JSON document safe and leaves all else
// as it is.
func (o *Sanitizer) document(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for {
		quote := bytes.IndexByte(data, '"')
		if quote < 0 {
			return append(out, data...)
		}
		end := quote + 1
		for ; data[end] != '"'; end++ {
			if data[end] == '\\' {
				end++
			}
		}
		out = append(append(out, data[:quote]...), o.literal(data[quote:end+1])...)
		data = data[end+1:]
	}
}

func (o *Sanitizer) literal(quoted []byte) []byte {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return []byte(`""`) // it was no string of a valid document
	}
	safe := o.Whole(text)
	if safe == text && Whole(string(quoted)) == string(quoted) {
		return quoted
	}
	return []byte(`"` + jsonText(safe) + `"`)
}

// SafeWriter makes safe what passes through it.
type SafeWriter struct {
	o      *Sanitizer
	mu     sync.Mutex
	redact *secretWriter
	clean  *cleaner
	voice  bool
}

// Writer passes on to w what an agent printed, in whatever chunks, each line
// after prefix. Close must be called; it does not close w.
func (o *Sanitizer) Writer(w io.Writer, prefix string) *SafeWriter {
	return o.through(&cleaner{to: w, prefix: prefix})
}

// Log passes on to w what is kept of an agent's output: whole lines, and JSON
// stays JSON. Close must be called; it does not close w.
func (o *Sanitizer) Log(w io.Writer) *SafeWriter { return o.through(&cleaner{to: w, log: true}) }

// Voice passes on to w what abl says itself. What is written in one piece and
// ends a line is shown at once.
func (o *Sanitizer) Voice(w io.Writer) *SafeWriter {
	v := o.through(&cleaner{to: w})
	v.voice = true
	return v
}

func (o *Sanitizer) through(clean *cleaner) *SafeWriter {
	return &SafeWriter{o: o, redact: o.redactor().Writer(clean), clean: clean}
}

// Fold makes the writer break lines into rows of at most so many columns, the
// prefix of each not counted. 0 is what it does without: no breaking.
func (w *SafeWriter) Fold(columns int) { w.clean.columns = max(columns, 0) }

// Write takes the next chunk.
func (w *SafeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.redact.r = w.o.redactor()
	n, err := w.redact.Write(p)
	if err == nil && w.voice && bytes.HasSuffix(p, []byte("\n")) {
		err = w.redact.Close()
	}
	return n, err
}

// Close writes what was held back.
func (w *SafeWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.redact.Close(), w.clean.Close())
}
