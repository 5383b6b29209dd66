package witness

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// lineSize is the longest line of a head that is read, in bytes.
const lineSize = 16 << 10

// errNotHTTP says that what comes is not HTTP/1, or such as only the app knows
// what to make of. It is passed on as it is.
var errNotHTTP = errors.New("not HTTP/1")

// readHead reads up to the empty line that ends a head and returns the bytes as
// they came; with an error those up to there.
func readHead(r *bufio.Reader) (raw []byte, err error) {
	for {
		line, err := r.ReadSlice('\n')
		raw = append(raw, line...)
		if err != nil && err != io.EOF || len(raw) > maxHead {
			err = errNotHTTP
		}
		if err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
			return raw, err
		}
	}
}

var requestLine = regexp.MustCompile(`^[A-Z]{1,19} [^ ]+ HTTP/1\.[01]\r?\n`)

// isRequest says whether HTTP/1 comes. It takes nothing, and waits for no byte
// that another protocol might not send before it hears something.
func isRequest(r *bufio.Reader) bool {
	for n := 1; ; n++ {
		b, err := r.Peek(n)
		switch {
		case err != nil:
			return false
		case n > 1 && b[n-1] == ' ':
			return isRequestLine(r)
		case n == 20 || b[n-1] < 'A' || b[n-1] > 'Z':
			return false
		}
	}
}

func isRequestLine(r *bufio.Reader) bool {
	for n := r.Buffered(); ; n = r.Buffered() + 1 {
		b, err := r.Peek(n)
		if err != nil || bytes.IndexByte(b, '\n') >= 0 {
			return requestLine.Match(b)
		}
	}
}

// readRequest reads the next request's head: io.EOF when there is none, and
// errNotHTTP with what was taken of something else.
func readRequest(r *bufio.Reader) (raw []byte, req *http.Request, err error) {
	if _, err := r.Peek(1); err != nil {
		return nil, nil, io.EOF
	}
	if !isRequest(r) {
		return nil, nil, errNotHTTP
	}
	if raw, err = readHead(r); err == nil {
		req, err = http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	}
	if err != nil {
		return raw, nil, errNotHTTP
	}
	return raw, req, nil
}

// framing says where a body ends.
type framing struct {
	chunked bool
	length  int64 // -1: where the connection does
}

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

// copyBody copies one body as it comes, and what it says, without the frames of its
// chunks, to seen.
func copyBody(w, seen io.Writer, r *bufio.Reader, f framing) error {
	both := io.MultiWriter(w, seen)
	switch {
	case f.chunked:
		return copyChunks(w, both, r)
	case f.length < 0:
		_, err := io.Copy(both, r)
		return err
	}
	_, err := io.CopyN(both, r, f.length)
	return err
}

func copyChunks(w, both io.Writer, r *bufio.Reader) error {
	for {
		line, err := copyLine(w, r)
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
		if line, err = copyLine(w, r); err != nil || line != "" {
			return errors.Join(err, errors.New("a chunk is longer than it says"))
		}
	}
	for { // trailers
		if line, err := copyLine(w, r); err != nil || line == "" {
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
