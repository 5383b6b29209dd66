package witness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Render prints test lines as an output without any doubt. What Parse made of a
// line, it makes of the line that is printed here, unless the line was too long.
func Render(points []Point) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "TAP version 14\n1..%d\n", len(points))
	for _, p := range points {
		p.render(&b)
	}
	return b.Bytes()
}

var escape = strings.NewReplacer(`\`, `\\`, `#`, `\#`)

func (p Point) render(b *bytes.Buffer) {
	if !p.OK {
		b.WriteString("not ")
	}
	b.WriteString("ok")
	if p.Number != 0 {
		fmt.Fprintf(b, " %d", max(0, p.Number))
	}
	b.WriteString(" -")
	if len(p.IDs) > 0 {
		b.WriteString(" " + strings.Join(p.IDs, ", "))
	}
	if p.Text != "" {
		b.WriteString(" " + escape.Replace(p.Text))
	}
	if p.Directive != "" {
		b.WriteString(" # " + strings.TrimSpace(p.Directive+" "+p.Reason))
	}
	b.WriteString("\n")
	if len(p.Fields) == 0 {
		return
	}
	b.WriteString("  ---\n")
	for _, f := range p.Fields {
		fmt.Fprintf(b, "  %s: ", f.Key)
		e := json.NewEncoder(b)
		e.SetEscapeHTML(false)
		_ = e.Encode(f.Value) // a string always can be
	}
	b.WriteString("  ...\n")
}
