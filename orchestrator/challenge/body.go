package challenge

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// framing says where a body ends.
type framing struct {
	chunked bool
	length  int64 // -1: where the connection does
}

func (f framing) empty() bool { return !f.chunked && f.length == 0 }

func requestFraming(req *http.Request) framing {
	return framing{chunked: req.ContentLength < 0, length: max(0, req.ContentLength)}
}

func answerFraming(method string, resp *http.Response) framing {
	switch {
	case method == http.MethodHead, resp.StatusCode == http.StatusNoContent, resp.StatusCode == http.StatusNotModified:
		return framing{}
	case len(resp.TransferEncoding) > 0:
		return framing{chunked: true}
	}
	return framing{length: resp.ContentLength}
}

// copyBody copies one body: to raw as it comes, to data what it says.
func copyBody(raw, data io.Writer, r *bufio.Reader, f framing) error {
	both := io.MultiWriter(raw, data)
	switch {
	case f.chunked:
		return copyChunks(raw, both, r)
	case f.length < 0:
		_, err := io.Copy(both, r)
		return err
	}
	_, err := io.CopyN(both, r, f.length)
	return err
}

func copyChunks(raw, both io.Writer, r *bufio.Reader) error {
	for {
		line, err := copyLine(raw, r)
		if err != nil {
			return err
		}
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseUint(strings.TrimSpace(digits), 16, 62)
		if err != nil {
			return errors.New("cannot read the size of a chunk")
		}
		if size == 0 {
			break
		}
		if _, err := io.CopyN(both, r, int64(size)); err != nil {
			return err
		}
		if line, err = copyLine(raw, r); err != nil || line != "" {
			return errors.Join(err, errors.New("a chunk is longer than it says"))
		}
	}
	for { // trailers
		if line, err := copyLine(raw, r); err != nil || line == "" {
			return err
		}
	}
}

// copyLine copies a line and returns it without its end.
func copyLine(w io.Writer, r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if _, failed := w.Write(line); failed != nil {
		return "", failed
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

// tentative holds a body back as long as it may still be changed; when it gets
// too long it lets all go, and what follows.
type tentative struct {
	to   io.Writer
	head []byte // what comes before it

	raw, data bytes.Buffer
	gone      bool
}

func (t *tentative) letGo() error {
	if t.gone {
		return nil
	}
	t.gone = true
	_, err := t.to.Write(append(bytes.Clone(t.head), t.raw.Bytes()...))
	t.raw, t.data = bytes.Buffer{}, bytes.Buffer{}
	return err
}

// rawSide takes the body as it comes.
type rawSide struct{ *tentative }

func (s rawSide) Write(p []byte) (int, error) {
	if s.gone {
		return s.to.Write(p)
	}
	if s.raw.Len()+len(p) > 2*maxBody { // chunks of a byte each
		if err := s.letGo(); err != nil {
			return 0, err
		}
		return s.to.Write(p)
	}
	return s.raw.Write(p)
}

// dataSide takes what it says.
type dataSide struct{ *tentative }

func (s dataSide) Write(p []byte) (int, error) {
	if s.gone {
		return len(p), nil
	}
	if s.data.Len()+len(p) > maxBody {
		return len(p), s.letGo()
	}
	return s.data.Write(p)
}

// hold copies a body through a tentative.
func (t *tentative) hold(r *bufio.Reader, f framing) error {
	return copyBody(rawSide{t}, dataSide{t}, r, f)
}
