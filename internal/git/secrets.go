package git

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"abl/internal/git/scan"
	"abl/internal/redact"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// ErrSecret marks a tree that was not committed for a secret that it holds.
var ErrSecret = errors.New("a secret would be committed")

// searched is a store that looks for secrets in what it takes. It knows contents
// by their hash alone; whose they are is known when the walk is over.
type searched struct {
	scan.Store
	any    *redact.Redactor
	byName map[string]*redact.Redactor

	mu    sync.Mutex
	found map[plumbing.Hash]string
}

func newSearched(store scan.Store, secrets map[string]string) *searched {
	s := &searched{Store: store, byName: map[string]*redact.Redactor{}, found: map[plumbing.Hash]string{}}
	s.any, _ = redact.New(slices.Collect(maps.Values(secrets))...)
	for name, value := range secrets {
		s.byName[name], _ = redact.New(value)
	}
	return s
}

// in names the secret that text holds, as it is or encoded, "" for none.
func (s *searched) in(text []byte) string {
	if s.any.Holds(text) {
		for _, name := range slices.Sorted(maps.Keys(s.byName)) {
			if s.byName[name].Holds(text) {
				return name
			}
		}
	}
	return ""
}

// Put looks at content on its way.
func (s *searched) Put(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error {
	if kind != plumbing.BlobObject {
		return s.Store.Put(kind, hash, size, r)
	}
	w := &window{in: s.in, held: make([]byte, 0, min(size, part+overlap))}
	err := s.Store.Put(kind, hash, size, io.TeeReader(r, w))
	w.look()
	if w.name != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found[hash] = w.name
	}
	return err
}

// window looks at a stream, a part at a time; parts overlap by more than any secret
// takes.
type window struct {
	in   func([]byte) string
	held []byte
	name string
}

const (
	part    = 1 << 20
	overlap = 64 << 10
)

func (w *window) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	if len(w.held)+len(p) > part+overlap {
		w.look()
		w.held = append(w.held[:0], w.held[len(w.held)-overlap:]...)
	}
	return len(p), nil
}

func (w *window) look() {
	if w.name == "" {
		w.name = w.in(w.held)
	}
}

// judge names the files, new or changed, that hold a secret, in their names or in
// what stands in them. The value is never told.
func (s *searched) judge(base, entries []*index.Entry) error {
	fresh := map[string]bool{}
	differing(base, entries, func(path string) { fresh[path] = true })
	const most = 10
	var all []string
	for _, e := range entries {
		if !fresh[e.Name] {
			continue
		}
		path := e.Name
		name := s.found[e.Hash]
		if other := s.in([]byte(path)); other != "" {
			name, path = other, s.any.String(path)
		}
		if name != "" && len(all) < most {
			all = append(all, fmt.Sprintf("%q has the value of %s", path, name))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w, plain or encoded: %s", ErrSecret, strings.Join(all, ", "))
}
