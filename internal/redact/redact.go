// Package redact takes secrets out of what is written or shown, also where a
// write ends in the middle of one, and in the forms that programs turn them
// into. It is the second wall: a secret that is spelled backwards passes.
package redact

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Shortest is the length in bytes from which a secret can be redacted. A
// shorter one turns up in innocent text by chance, and taking it out would tell
// where it is.
const Shortest = 8

// Redactor knows the secrets. The zero Redactor knows none.
type Redactor struct {
	forms []form    // the longest first
	first [256]bool // bytes with which a form begins
}

// form is one spelling of a secret and what is shown in its place.
type form struct {
	spelling []byte
	shown    string
}

// New returns a Redactor of the secrets, and how many of them are too short to
// be redacted. An empty secret is none, and is not counted.
func New(secrets ...string) (r *Redactor, refused int) {
	r = &Redactor{}
	seen := map[string]bool{}
	for _, secret := range secrets {
		if len(secret) < Shortest {
			refused += min(len(secret), 1)
			continue
		}
		for _, spelling := range spellings(secret) {
			if !seen[spelling] {
				seen[spelling] = true
				r.add(spelling, mark(secret))
			}
		}
	}
	slices.SortStableFunc(r.forms, func(a, b form) int { return len(b.spelling) - len(a.spelling) })
	return r, refused
}

func (r *Redactor) add(spelling, shown string) {
	r.forms = append(r.forms, form{[]byte(spelling), shown})
	r.first[spelling[0]] = true
}

// mark is what is shown instead: enough to tell two keys apart.
func mark(secret string) string {
	text := []rune(strings.TrimSpace(secret))
	return fmt.Sprintf("[secret …%s]", string(text[max(0, len(text)-2):]))
}

// String takes the secrets out of s.
func (r *Redactor) String(s string) string {
	var out bytes.Buffer
	w := r.Writer(&out)
	_, err := w.Write([]byte(s))
	if err = errors.Join(err, w.Close()); err != nil {
		return "" // a buffer does not fail; if it did, nothing would be shown
	}
	return out.String()
}
