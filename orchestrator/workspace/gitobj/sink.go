package gitobj

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"sync"

	"abl/orchestrator/workspace/gitdir"
)

// Up to this many small objects are written as loose files: each costs an
// fsync, but a pack for every tiny commit would slow down every later lookup.
const (
	fewObjects = 8
	fewBytes   = 64 << 10
)

// Sink collects the new objects of one snapshot. Its methods may be called
// from several goroutines; nothing is there before Finish.
type Sink struct {
	dir gitdir.Dir

	mu    sync.Mutex
	seen  map[Hash]bool
	few   []object
	bytes int
	pack  *pack
}

type object struct {
	kind Kind
	name Hash
	data []byte
}

// NewSink collects objects for a repository.
func NewSink(d gitdir.Dir) *Sink { return &Sink{dir: d, seen: map[Hash]bool{}} }

// claim says whether the object is new to this sink.
func (s *Sink) claim(name Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen[name] {
		return false
	}
	s.seen[name] = true
	return true
}

// Put adds an object whose name is known. The sink may keep data.
func (s *Sink) Put(k Kind, name Hash, data []byte) error {
	if !s.claim(name) {
		return nil
	}
	s.mu.Lock()
	if s.pack == nil && len(s.few) < fewObjects && s.bytes+len(data) <= fewBytes {
		s.few = append(s.few, object{k, name, bytes.Clone(data)})
		s.bytes += len(data)
		s.mu.Unlock()
		return nil
	}
	s.mu.Unlock()
	packed := deflate(data) // outside the lock: this is where the time goes
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.openPack(); err != nil {
		return err
	}
	return s.pack.add(object{k, name, packed}, int64(len(data)))
}

// PutStream adds an object of size bytes read from r, which must hash to name.
func (s *Sink) PutStream(k Kind, name Hash, size int64, r io.Reader) error {
	if !s.claim(name) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.openPack()
	if err == nil {
		err = s.pack.stream(k, name, size, r)
	}
	if err != nil {
		delete(s.seen, name)
	}
	return err
}

// openPack begins the pack with what was to be loose.
func (s *Sink) openPack() error {
	if s.pack != nil {
		return nil
	}
	p, err := newPack(s.dir)
	if err != nil {
		return fmt.Errorf("cannot begin a pack: %w", err)
	}
	s.pack = p
	for _, o := range s.few {
		size := int64(len(o.data))
		if err := p.add(object{o.kind, o.name, deflate(o.data)}, size); err != nil {
			return err
		}
	}
	s.few = nil
	return nil
}

// Finish makes all objects durable.
func (s *Sink) Finish() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.few {
		if err := WriteLoose(s.dir, o.kind, o.name, o.data); err != nil {
			return err
		}
	}
	if s.pack == nil {
		return nil
	}
	return s.pack.finish()
}

// Close drops what was not finished.
func (s *Sink) Close() {
	if s.pack != nil {
		s.pack.close()
	}
}

var writers = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic("internal error: zlib refuses its own level: " + err.Error())
	}
	return w
}}

func deflate(data []byte) []byte {
	var b bytes.Buffer
	w := writers.Get().(*zlib.Writer)
	defer writers.Put(w)
	w.Reset(&b)
	w.Write(data) // a bytes.Buffer takes everything
	w.Close()
	return b.Bytes()
}
