package witness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Limits of a record in bytes. After maxBodies it gets exchanges without bodies, after maxRecord
// no more exchanges.
const (
	maxBodies = 32 << 20
	maxRecord = 48 << 20
)

// Record writes exchanges to To, one line of JSON each. It is safe for concurrent use.
type Record struct {
	To io.Writer

	mu      sync.Mutex
	written int
	err     error
}

// Add writes one exchange.
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

// ReadRecord reads the exchanges of a Record and sorts them by their start. It ignores an
// incomplete last line.
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
