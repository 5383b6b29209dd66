package hostile

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
)

// digest returns a digest of a file's content or a link's target.
func digest(t testing.TB, path string, info fs.FileInfo) string {
	t.Helper()
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			t.Error(err)
		}
		return target
	case info.Mode().IsRegular():
		data, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(data))
	}
	return ""
}

// encodings returns the forms in which a thief may hide a word: unchanged, reversed, and in
// common encodings.
func encodings(word string) []string {
	backwards := []byte(word)
	slices.Reverse(backwards)
	all := []string{word, string(backwards), hex.EncodeToString([]byte(word))}
	for shift := range 3 { // offset of the word in a group of three bytes
		code := base64.RawStdEncoding.EncodeToString(append(bytes.Repeat([]byte{0}, shift), word...))
		all = append(all, code[shift+(shift+1)/2:len(code)-2])
	}
	if q := url.QueryEscape(word); q != word {
		all = append(all, q)
	}
	return all
}

// written reads the data of a file and skips its holes: an agent can create a sparse file of a
// terabyte.
type written struct {
	f         *os.File
	next, end int64 // of the current segment
}

func (w *written) Read(b []byte) (int, error) {
	const data, hole = 3, 4 // SEEK_DATA, SEEK_HOLE
	if w.next == w.end {
		var err error
		if w.next, err = w.f.Seek(w.end, data); err != nil {
			return 0, io.EOF // only a hole follows
		}
		if w.end, err = w.f.Seek(w.next, hole); err != nil {
			return 0, err
		}
	}
	n, err := w.f.ReadAt(b[:min(int64(len(b)), w.end-w.next)], w.next)
	w.next += int64(n)
	return n, err
}

const (
	chunk = 1 << 20
	keep  = 256 // longer than any needle
)

var buffers = sync.Pool{New: func() any { return new([chunk + keep]byte) }}

// search returns the needles that a stream contains, wherever chunks are split.
func search(t testing.TB, r io.Reader, needles []string) (found []string) {
	t.Helper()
	whole := buffers.Get().(*[chunk + keep]byte)
	defer buffers.Put(whole)
	buf := whole[:0]
	for {
		n, err := io.ReadFull(r, buf[len(buf) : len(buf)+chunk][:chunk])
		buf = buf[:len(buf)+n]
		for _, needle := range needles {
			if bytes.Contains(buf, []byte(needle)) && !slices.Contains(found, needle) {
				found = append(found, needle)
			}
		}
		if err != nil {
			if err != io.EOF && err != io.ErrUnexpectedEOF {
				t.Error(err)
			}
			return found
		}
		tail := buf[max(0, len(buf)-keep):]
		copy(buf[:cap(buf)], tail)
		buf = buf[:len(tail)]
	}
}

// search finds a word in each form and at every position of a stream.
func TestSearchFindsEveryEncoding(t *testing.T) {
	const word = "canaryKey0123456789"
	forms := needles(word)
	hidden := map[string]string{
		"raw": word, "hex": hex.EncodeToString([]byte(word)),
		"base64 1": base64.StdEncoding.EncodeToString([]byte("a" +
			word)), "base64 2": base64.StdEncoding.EncodeToString([]byte("ab" + word + "cd")),
		"base64 0": base64.StdEncoding.EncodeToString([]byte(word)),
	}
	for name, text := range hidden {
		for _, at := range []int{0, 7, chunk - 5, chunk, 2*chunk - 1} {
			if got := search(t, bytes.NewReader(append(make([]byte, at), text...)), forms); len(got) != 1 {
				t.Errorf("%s at %d: got %v, want one needle", name, at, got)
			}
		}
	}
	if got := search(t, bytes.NewReader(make([]byte, 3*chunk)), forms); len(got) != 0 {
		t.Errorf("got %v in an empty stream, want nothing", got)
	}
}
