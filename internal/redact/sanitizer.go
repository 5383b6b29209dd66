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

// Sanitizer removes secrets and makes text safe. A nil Sanitizer has no secrets.
type Sanitizer struct {
	mu      sync.Mutex
	secrets []string
	knows   atomic.Pointer[Redactor]
}

// NewSanitizer returns a Sanitizer for the secrets in an environment (NAME=value), according to the
// names of the variables.
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

// Hide adds secrets. It ignores secrets shorter than Shortest.
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
	o.knows.Store(New(o.secrets...))
}

var none = &Redactor{}

func (o *Sanitizer) redactor() *Redactor {
	if o == nil {
		return none
	}
	return cmp.Or(o.knows.Load(), none)
}

// Redact removes the secrets from text that abl parses or cuts. The result is not safe to show.
func (o *Sanitizer) Redact(s string) string { return o.redactor().String(s) }

// Bytes is Redact for bytes. It returns p itself if it contains no secret.
func (o *Sanitizer) Bytes(p []byte) []byte { return o.redactor().Bytes(p) }

// Whole returns text that is safe to store in a file. It may have several lines of any length.
func (o *Sanitizer) Whole(s string) string { return Whole(o.Redact(s)) }

// String returns text that is safe to show. It may have several lines.
func (o *Sanitizer) String(s string) string { return String(o.Redact(s)) }

// Line returns text on one line that is safe to show: no part of it looks like a line of abl.
func (o *Sanitizer) Line(s string) string { return Line(o.Redact(s)) }

// JSON returns v as one line of JSON. Every string in it is safe, encoded and decoded.
func (o *Sanitizer) JSON(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	return append(o.document(data), '\n'), nil
}

// Clean makes all strings in the value that v points to safe to store.
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

// document makes the strings of a valid JSON document safe.
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

// literal returns a JSON string without secrets and control characters.
func (o *Sanitizer) literal(quoted []byte) []byte {
	var text string
	if json.Unmarshal(quoted, &text) != nil {
		return []byte(`""`) // the document was invalid
	}
	safe := o.Whole(text)
	if safe == text && Whole(string(quoted)) == string(quoted) {
		return quoted
	}
	return []byte(`"` + jsonText(safe) + `"`)
}

// SafeWriter makes its input safe.
type SafeWriter struct {
	o          *Sanitizer
	mu         sync.Mutex
	redact     *secretWriter
	clean      *cleaner
	flushLines bool
}

// Writer returns a writer for the output of an agent. It writes to w, with prefix before each line.
// Close must be called. It does not close w.
func (o *Sanitizer) Writer(w io.Writer, prefix string) *SafeWriter {
	return o.through(&cleaner{to: w, prefix: prefix})
}

// Log returns a writer for the stored output of an agent. It cuts no line and keeps JSON valid.
// Close must be called. It does not close w.
func (o *Sanitizer) Log(w io.Writer) *SafeWriter { return o.through(&cleaner{to: w, log: true}) }

// Messages returns a writer for abl's own messages. It writes a message that ends with a line end
// immediately.
func (o *Sanitizer) Messages(w io.Writer) *SafeWriter {
	v := o.through(&cleaner{to: w})
	v.flushLines = true
	return v
}

func (o *Sanitizer) through(clean *cleaner) *SafeWriter {
	return &SafeWriter{o: o, redact: o.redactor().Writer(clean), clean: clean}
}

// Fold makes the writer break lines into rows of at most columns columns, without the prefix. 0
// breaks no lines.
func (w *SafeWriter) Fold(columns int) { w.clean.columns = max(columns, 0) }

// Write processes the next chunk.
func (w *SafeWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.redact.r = w.o.redactor()
	n, err := w.redact.Write(p)
	if err == nil && w.flushLines && bytes.HasSuffix(p, []byte("\n")) {
		err = w.redact.Close()
	}
	return n, err
}

// Close writes the remaining input.
func (w *SafeWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.redact.Close(), w.clean.Close())
}
