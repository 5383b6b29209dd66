// Package build runs build.sh on this machine, and keeps of its output what a
// person and a model can read.
package build

import (
	"fmt"
	"io"
	"strings"
)

// Half is how much is kept of the beginning of an output, and of its end.
const Half = 128 << 10

// Capped keeps the beginning and the end of what is written to it, and passes
// all of it on.
type Capped struct {
	To   io.Writer // may be nil; that it fails is no reason to stop a build
	head []byte
	tail []byte // a ring once it is full
	at   int
	all  int64
}

// Write takes the next chunk.
func (c *Capped) Write(p []byte) (int, error) {
	if c.To != nil {
		c.To.Write(p)
	}
	n := len(p)
	c.all += int64(n)
	if free := Half - len(c.head); free > 0 {
		k := min(free, len(p))
		c.head = append(c.head, p[:k]...)
		p = p[k:]
	}
	if len(p) > Half {
		p = p[len(p)-Half:]
	}
	for len(p) > 0 {
		if len(c.tail) < Half {
			k := min(Half-len(c.tail), len(p))
			c.tail = append(c.tail, p[:k]...)
			p = p[k:]
			continue
		}
		k := copy(c.tail[c.at:], p)
		c.at = (c.at + k) % Half
		p = p[k:]
	}
	return n, nil
}

// String is what was kept, as text, with a word about what was not.
func (c *Capped) String() string {
	tail := string(c.tail[c.at:]) + string(c.tail[:c.at])
	left := c.all - int64(len(c.head)) - int64(len(tail))
	if left == 0 {
		return text(string(c.head) + tail)
	}
	return text(string(c.head)) + fmt.Sprintf("\n[%d bytes of output are left out here]\n", left) + text(tail)
}

// text is what can stand in a prompt.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}
