package workspace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"abl/internal/redact"
	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitobj"
	"abl/orchestrator/workspace/scan"
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
	found map[gitindex.Hash]string
}

func newSearched(store scan.Store, secrets map[string]string) *searched {
	s := &searched{Store: store, byName: map[string]*redact.Redactor{}, found: map[gitindex.Hash]string{}}
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

func (s *searched) note(hash gitindex.Hash, name string) {
	if name != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.found[hash] = name
	}
}

// Put looks at a small object on its way.
func (s *searched) Put(k gitobj.Kind, hash gitobj.Hash, data []byte) error {
	if k == gitobj.Blob {
		s.note(hash, s.in(data))
	}
	return s.Store.Put(k, hash, data)
}

// PutStream looks at a large one.
func (s *searched) PutStream(k gitobj.Kind, hash gitobj.Hash, size int64, r io.Reader) error {
	w := &window{in: s.in}
	err := s.Store.PutStream(k, hash, size, io.TeeReader(r, w))
	w.look()
	s.note(hash, w.name)
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
	if len(w.held) >= part {
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
func (s *searched) judge(base, entries []gitindex.Entry) error {
	fresh := map[string]bool{}
	differing(base, entries, func(path string) { fresh[path] = true })
	const most = 10
	var all []string
	for _, e := range entries {
		if !fresh[e.Path] {
			continue
		}
		path := e.Path
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
