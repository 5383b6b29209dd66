package gitobj

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// Kind is the type of an object.
type Kind string

// The kinds that abl writes.
const (
	Blob       Kind = "blob"
	TreeKind   Kind = "tree"
	CommitKind Kind = "commit"
)

// packType is the number of the kind in a pack.
func (k Kind) packType() byte {
	switch k {
	case CommitKind:
		return 1
	case TreeKind:
		return 2
	}
	return 3
}

// Name computes the name of an object.
func Name(k Kind, data []byte) Hash {
	h := NewNamer(k, int64(len(data)))
	h.Write(data)
	return Sum(h)
}

// NewNamer begins the name of an object of size bytes, which are written to it.
func NewNamer(k Kind, size int64) hash.Hash {
	h := sha1.New()
	h.Write(header(k, size))
	return h
}

// Sum is the name that a namer has come to.
func Sum(h hash.Hash) (name Hash) {
	h.Sum(name[:0])
	return name
}

func header(k Kind, size int64) []byte {
	b := append([]byte(k), ' ')
	return append(strconv.AppendInt(b, size, 10), 0)
}

// ParseHash reads 40 hexadecimal digits.
func ParseHash(s string) (h Hash, err error) {
	if n, err := hex.Decode(h[:], []byte(s[:min(len(s), 40)])); err != nil || n != len(h) || len(s) != 40 {
		return Hash{}, fmt.Errorf("%q is not the name of an object", s)
	}
	return h, nil
}
