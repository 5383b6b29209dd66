package witness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
)

// readAhead is how much is read ahead, in bytes.
const readAhead = 16 << 10

// errNotHTTP says that what comes is not HTTP/1, or such as only the app knows
// what to make of. It is passed on as it is.
var errNotHTTP = errors.New("not HTTP/1")

// side is one side of a connection. Whatever net/http reads of it is kept as it came
// until it is taken to be passed on.
type side struct {
	net.Conn
	in   *bufio.Reader
	came []byte // not taken yet, with what in has read ahead
	head bool   // a head is being read, which is no longer than maxHead
}

func newSide(conn net.Conn) *side {
	s := &side{Conn: conn}
	s.in = bufio.NewReaderSize(s, readAhead)
	return s
}

// Read reads for in.
func (s *side) Read(p []byte) (int, error) {
	if s.head {
		p = p[:max(0, min(len(p), maxHead-len(s.came)))]
	}
	if len(p) == 0 {
		return 0, errNotHTTP
	}
	n, err := s.Conn.Read(p)
	s.came = append(s.came, p[:n]...)
	return n, err
}

// take gives what was read since the last time, as it came.
func (s *side) take() []byte {
	n := len(s.came) - s.in.Buffered()
	taken := s.came[:n:n]
	s.came = s.came[n:]
	return taken
}

var methodBegins = regexp.MustCompile(`^[A-Z]{1,19} ?$`)

// isRequest says whether HTTP/1 may come. It takes nothing, and waits for no byte
// that another protocol might not send before it hears something.
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

// request reads the next request's head: io.EOF when there is none, and errNotHTTP where
// something else comes.
func (s *side) request() (*http.Request, error) {
	if _, err := s.in.Peek(1); err != nil {
		return nil, io.EOF
	}
	if !s.isRequest() {
		return nil, errNotHTTP
	}
	s.head = true
	req, err := http.ReadRequest(s.in)
	if s.head = false; err != nil || req.ProtoMajor != 1 {
		return nil, errNotHTTP
	}
	return req, nil
}

// answer reads the head of the answer to a request of this method.
func (s *side) answer(method string) (*http.Response, error) {
	s.head = true
	resp, err := http.ReadResponse(s.in, &http.Request{Method: method})
	s.head = false
	return resp, err
}

// body passes on a body of this side as it comes, and what it says, without the frames of
// its chunks, to seen.
func (s *side) body(body io.Reader, to, seen io.Writer) error {
	_, err := io.CopyBuffer(passing{s, to, seen}, body, make([]byte, readAhead))
	if _, failed := to.Write(s.take()); failed != nil {
		return failed
	}
	return err
}

// passing passes on what was read of a side whenever some of it is seen.
type passing struct {
	from     *side
	to, seen io.Writer
}

func (p passing) Write(data []byte) (int, error) {
	if _, err := p.to.Write(p.from.take()); err != nil {
		return 0, err
	}
	return p.seen.Write(data)
}

// rest passes on all that follows as it is.
func (s *side) rest(to, seen io.Writer) error {
	both := io.MultiWriter(to, seen)
	if _, err := both.Write(s.came); err != nil {
		return err
	}
	_, err := io.Copy(both, s.Conn)
	return err
}
