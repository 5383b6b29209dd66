// Package outlet is the way out: whatever leaves abl for a reader, at a
// terminal, in a file or in a prompt, passes the redactor and then the
// sanitiser. In this order, for what the sanitiser cuts or escapes could hide a
// part of a secret from the redactor.
package outlet

import (
	"html"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"abl/internal/redact"
	"abl/internal/sanitize"
)

// Outlet knows the secrets that nobody may see. A nil Outlet knows none; it
// makes text safe all the same.
type Outlet struct {
	mu      sync.Mutex
	secrets []string
	knows   atomic.Pointer[redact.Redactor]
}

// New is an Outlet that knows the secrets of an environment: of variables,
// given as NAME=value, whose name says that they are secret.
func New(environ []string) *Outlet {
	vars := map[string]string{}
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		vars[name] = value
	}
	secrets, _ := redact.Secrets(vars, false)
	o := &Outlet{}
	o.Hide(secrets...)
	return o
}

// Hide adds secrets to those that are taken out from now on. Those shorter than
// redact.Shortest cannot be.
func (o *Outlet) Hide(secrets ...string) {
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
	r, _ := redact.New(o.secrets...)
	o.knows.Store(r)
}

var none = &redact.Redactor{}

func (o *Outlet) redactor() *redact.Redactor {
	if o != nil {
		if r := o.knows.Load(); r != nil {
			return r
		}
	}
	return none
}

// Redact takes the secrets out of text that stays within abl, before it is
// parsed or cut; it is not safe to show.
func (o *Outlet) Redact(s string) string { return o.redactor().String(s) }

// Bytes is Redact for bytes; without a secret in them it returns p itself.
func (o *Outlet) Bytes(p []byte) []byte { return o.redactor().Bytes(p) }

// Whole is text of several lines, however long, safe to keep in a file.
func (o *Outlet) Whole(s string) string {
	return sanitize.Whole(o.Redact(s))
}

// String is text of several lines, safe to show.
func (o *Outlet) String(s string) string { return sanitize.String(o.Redact(s)) }

// Line is text on one line, safe to show: no part of it can pass for a line of
// abl's own.
func (o *Outlet) Line(s string) string { return sanitize.Line(o.Redact(s)) }

// HTML is text for an element or a quoted attribute of a page. It has no place
// in a script, a style or an address.
func (o *Outlet) HTML(s string) string { return html.EscapeString(o.String(s)) }
