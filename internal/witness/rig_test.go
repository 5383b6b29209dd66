package witness

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// rawApp responds to each request with the bytes that answers has for its path. It closes the
// connection after a path that ends with "/close".
func rawApp(t testing.TB, answers map[string]string) string {
	return start(t, func(ctx context.Context, l net.Listener) error {
		return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
			r := bufio.NewReader(conn)
			for {
				req, err := http.ReadRequest(r)
				if err != nil {
					_, _ = io.Copy(conn, r) // what is no HTTP gets itself back
					return
				}
				if req.Header.Get("Expect") != "" {
					_, _ = io.WriteString(conn, "HTTP/1.1 100 Continue\r\nX: y\r\n\r\n")
				}
				body, _ := io.ReadAll(req.Body)
				what := answers[req.URL.Path]
				_, _ = io.WriteString(conn, strings.ReplaceAll(what, "BODY", string(body)))
				if strings.HasSuffix(req.URL.Path, "/close") {
					return
				}
				if strings.HasPrefix(what, "HTTP/1.1 101") || req.Method == http.MethodConnect {
					_, _ = io.Copy(conn, r)
					return
				}
			}
		})
	})
}

// proxied starts a proxy in front of an app.
func proxied(t testing.TB, to string) (at string) {
	return start(t, (&Proxy{To: to, Seen: func(Exchange) {}}).Serve)
}

// readHead reads up to the empty line after a head and returns the bytes as received.
func readHead(r *bufio.Reader) (raw []byte, err error) {
	for {
		line, err := r.ReadBytes('\n')
		raw = append(raw, line...)
		if err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
			return raw, err
		}
	}
}
