package redact

import (
	"html"
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
	if o != nil {
		if r := o.knows.Load(); r != nil {
			return r
		}
	}
	return none
}

// Redact takes the secrets out of text that stays within abl, before it is
// parsed or cut; it is not safe to show.
func (o *Sanitizer) Redact(s string) string { return o.redactor().String(s) }

// Bytes is Redact for bytes; without a secret in them it returns p itself.
func (o *Sanitizer) Bytes(p []byte) []byte { return o.redactor().Bytes(p) }

// Whole is text of several lines, however long, safe to keep in a file.
func (o *Sanitizer) Whole(s string) string {
	return Whole(o.Redact(s))
}

// String is text of several lines, safe to show.
func (o *Sanitizer) String(s string) string { return String(o.Redact(s)) }

// Line is text on one line, safe to show: no part of it can pass for a line of
// abl's own.
func (o *Sanitizer) Line(s string) string { return Line(o.Redact(s)) }

// HTML is text for an element or a quoted attribute of a page. It has no place
// in a script, a style or an address.
func (o *Sanitizer) HTML(s string) string { return html.EscapeString(o.String(s)) }
