package evidence

import (
	"fmt"
	"testing"

	"abl/internal/spec"
)

// Code marks around a whole action or result do not change how a status or an exit code is read. A
// command or a text needs them.
func TestRead(t *testing.T) {
	for _, c := range []struct{ line, claim, run string }{
		{"`GET /ping` → `200`", "[GET /ping] [200] []", ""},
		{"`GET /ping` → `pong`", `[GET /ping] [] [the body is "pong"]`, `[each run] [] [the line "pong" in standard output]`},
		{`GET /ping → "OK"`, `[GET /ping] [] [the body is "OK"]`, `[each run] [] [the line "OK" in standard output]`},
		{"GET /ping → OK", "", ""},
		{"`notes rm ID` → exit code 0", "", "[runs with rm] [0] []"},
		{"**`notes rm ID`** → `exit code 0`", "", "[runs with rm] [0] []"},
		{"`notes list` → `nothing`", "", "[runs with list] [] [output and files]"},
		{"notes list → nothing", "", ""},
	} {
		t.Run(c.line, func(t *testing.T) {
			p, _ := spec.Parse("phase1.md", []byte("# One\n\n## Contracts\n\n- "+c.line+"\n"), 1)
			if len(p.Contracts) != 1 {
				t.Fatalf("got %d contracts, want 1", len(p.Contracts))
			}
			read, claim, run := Read(p.Contracts[0]), "", ""
			if read.Claim != nil {
				r := read.Claim.Reading()
				claim = fmt.Sprint(r.Requests, r.Statuses, r.Answer)
			}
			if read.Run != nil {
				r := read.Run.Reading()
				run = fmt.Sprint(r.Requests, r.Statuses, r.Answer)
			}
			if claim != c.claim || run != c.run {
				t.Errorf("got %q and %q, want %q and %q", claim, run, c.claim, c.run)
			}
		})
	}
}
