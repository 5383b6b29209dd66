package witness

import (
	"bufio"
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

// copyBody copies one body as it comes.
func copyBody(w io.Writer, r *bufio.Reader, f framing) error {
	switch {
	case f.chunked:
		return copyChunks(w, r)
	case f.length < 0:
		_, err := io.Copy(w, r)
		return err
	}
	_, err := io.CopyN(w, r, f.length)
	return err
}

func copyChunks(w io.Writer, r *bufio.Reader) error {
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
		if _, err := io.CopyN(w, r, int64(size)); err != nil {
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
