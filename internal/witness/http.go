package witness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
)

// readAhead is the size of read buffers in bytes.
const readAhead = 16 << 10

// errNotHTTP is the error for data that is not HTTP/1 or that only the app can interpret. The proxy
// passes such data on unchanged.
var errNotHTTP = errors.New("not HTTP/1")

// side is one side of a connection. It keeps all bytes that net/http reads from it until take
// returns them.
type side struct {
	net.Conn
	in       *bufio.Reader
	received []byte // bytes that drain has not returned yet, with those buffered by in
	head     bool   // net/http is reading a head, which is limited to maxHead bytes
}

func newSide(conn net.Conn) *side {
	s := &side{Conn: conn}
	s.in = bufio.NewReaderSize(s, readAhead)
	return s
}

// Read reads from the connection on behalf of in.
func (s *side) Read(p []byte) (int, error) {
	if s.head {
		p = p[:max(0, min(len(p), maxHead-len(s.received)))]
	}
	if len(p) == 0 {
		return 0, errNotHTTP
	}
	n, err := s.Conn.Read(p)
	s.received = append(s.received, p[:n]...)
	return n, err
}

// drain returns the bytes that were read since the last drain.
func (s *side) drain() []byte {
	n := len(s.received) - s.in.Buffered()
	drained := s.received[:n:n]
	s.received = s.received[n:]
	return drained
}

var methodBegins = regexp.MustCompile(`^[A-Z]{1,19} ?$`)

// isRequest reports whether the next bytes can be an HTTP/1 request. It consumes nothing. It does
// not wait for bytes that a client of another protocol might never send.
func (s *side) isRequest() bool {
	for n := 1; ; n++ {
		begins, err := s.in.Peek(n)
		if err != nil || !methodBegins.Match(begins) {
			return false
		}
		if begins[n-1] == ' ' {
			return true
		}
	}
}

// request reads the head of the next request. It returns io.EOF at the end and errNotHTTP for data
// that is not HTTP/1.
func (s *side) request() (*http.Request, error) {
	if _, err := s.in.Peek(1); err != nil {
		return nil, io.EOF
	}
	if !s.isRequest() {
		return nil, errNotHTTP
	}
	s.head = true
	req, err := http.ReadRequest(s.in)
	s.head = false
	if err != nil || req.ProtoMajor != 1 {
		return nil, errNotHTTP
	}
	return req, nil
}

// answer reads the head of the response to a request with this method.
func (s *side) answer(method string) (*http.Response, error) {
	s.head = true
	resp, err := http.ReadResponse(s.in, &http.Request{Method: method})
	s.head = false
	return resp, err
}

// body copies body, which is a body from this side, to to as it arrives. It writes the content
// without chunk headers to seen.
func (s *side) body(body io.Reader, to, seen io.Writer) error {
	_, err := io.CopyBuffer(passing{s, to, seen}, body, make([]byte, readAhead))
	if _, failed := to.Write(s.drain()); failed != nil {
		return failed
	}
	return err
}

// passing is a writer that copies the bytes read from a side to to with each Write.
type passing struct {
	from     *side
	to, seen io.Writer
}

func (p passing) Write(data []byte) (int, error) {
	if _, err := p.to.Write(p.from.drain()); err != nil {
		return 0, err
	}
	return p.seen.Write(data)
}

// copyRest copies all remaining data to to and seen unchanged.
func (s *side) copyRest(to, seen io.Writer) error {
	both := io.MultiWriter(to, seen)
	if _, err := both.Write(s.received); err != nil {
		return err
	}
	_, err := io.Copy(both, s.Conn)
	return err
}
