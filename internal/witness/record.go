package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Bounds on a record, in bytes. Beyond the first exchanges are kept without their bodies,
// beyond the second not at all.
const (
	maxBodies = 32 << 20
	maxRecord = 48 << 20
)

// Record takes exchanges, a line of JSON each.
type Record struct {
	To io.Writer

	mu      sync.Mutex
	written int
	err     error
}

// Add writes an exchange down.
func (r *Record) Add(x Exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written > maxBodies {
		x.Sent.Begins, x.Got.Begins = nil, nil
	}
	line, err := json.Marshal(x)
	if err != nil || r.err != nil || r.written > maxRecord {
		r.err = errors.Join(r.err, err)
		return
	}
	n, err := r.To.Write(append(line, '\n'))
	r.written, r.err = r.written+n, err
}

// ReadRecord reads what a Record took, in the order in which it began. A last line that was
// not written to its end is none.
func ReadRecord(from io.Reader) (all []Exchange, err error) {
	lines := json.NewDecoder(io.LimitReader(from, maxRecord+1<<20))
	for {
		var x Exchange
		switch err := lines.Decode(&x); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			slices.SortStableFunc(all, func(a, b Exchange) int { return a.At.Compare(b.At) })
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("cannot read exchange %d: %w", len(all)+1, err)
		}
		all = append(all, x)
	}
}
