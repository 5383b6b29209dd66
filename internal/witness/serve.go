// Package witness observes the connections between an app and the tests in a replay.
//
// It has a proxy that passes on and records every exchange, and servers that replace the app with
// empty responses. It reads contracts and compares them with exchanges. Package evidence draws the
// conclusions.
package witness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"sync"
	"time"
)

// Limits of the memory that the app and the tests can use.
const (
	maxConns = 256      // further connections wait
	maxHead  = 64 << 10 // bytes of a head; a request or response with a longer one passes unread
)

// Serve calls handle for each connection until ctx is done. Then it closes all connections and
// waits for the calls to return.
func Serve(ctx context.Context, l net.Listener, handle func(context.Context, net.Conn)) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	places := make(chan struct{}, maxConns)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("cannot accept connections: %w", err)
		case err != nil:
			<-places
			time.Sleep(10 * time.Millisecond) // probably out of file descriptors
			continue
		}
		all.Go(func() {
			defer func() { <-places }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			handle(ctx, conn)
		})
	}
}

// Null responds to every HTTP/1 request with status and an empty body until ctx is done. It closes
// other connections without a response.
func Null(ctx context.Context, l net.Listener, status int) error {
	reply := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, http.StatusText(status))
	return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
		client := newSide(conn)
		for {
			req, err := client.request()
			if err == nil && req.Header.Get("Expect") != "" { // the client waits before it sends the body
				_, err = io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
			}
			if err != nil || client.body(req.Body, io.Discard, io.Discard) != nil {
				return
			}
			if _, err := io.WriteString(conn, reply); err != nil || req.Close {
				return
			}
		}
	})
}

// SendLine sends line to every client and closes its side. It replaces an app that does not use
// HTTP.
func SendLine(ctx context.Context, l net.Listener, line string) error {
	return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
		_, _ = io.WriteString(conn, line)
		closeWrite(conn)
		_, _ = io.Copy(io.Discard, conn)
	})
}

// Commands replaces the broker until ctx is done. It reports exit code 0 and no output for every
// command, so that tests that prepare the system first continue. It responds to a run of the app
// with ran, or resets the connection if ran is empty.
func Commands(ctx context.Context, l net.Listener, ran string) error {
	return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
		client := newSide(conn)
		req, err := client.request()
		if err != nil {
			return
		}
		reply := `{"exit":0}`
		if req.URL.Path == RunTarget {
			reply = ran
		}
		if reply == "" {
			reset(conn)
			return
		}
		_, err = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"Connection: close\r\n\r\n%s", len(reply), reply)
		if err == nil {
			closeWrite(conn)
			_, _ = io.Copy(io.Discard, conn) // closing with unread input would reset the connection
		}
	})
}

// dialTime is the maximum time for a connection to the app.
const dialTime = 10 * time.Second

// accepted is the byte that a proxy socket sends when the app has accepted the connection.
const accepted = "+"

// dial connects to an address. An absolute path is that of a proxy socket. There dial fails, like
// at the app's own port, as soon as it is known that nothing listens.
func dial(ctx context.Context, to string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTime}
	if !path.IsAbs(to) {
		return dialer.DialContext(ctx, "tcp", to)
	}
	conn, err := dialer.DialContext(ctx, "unix", to)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.ReadFull(conn, make([]byte, len(accepted))); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// reset resets a connection, so that the client sees nearly the same as with a closed port.
func reset(conn net.Conn) {
	if far, ok := conn.(through); ok {
		defer far.client.Close()
		conn = far.client
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// withConn connects to an address and calls do with the connection. If it cannot connect, it resets
// the client's connection and returns false.
func withConn(ctx context.Context, client net.Conn, to string, do func(app net.Conn)) bool {
	app, err := dial(ctx, to)
	if err != nil {
		reset(client)
		return false
	}
	defer app.Close()
	defer context.AfterFunc(ctx, func() { app.Close() })()
	do(app)
	return true
}

// Relay passes connections of l on to an address, byte by byte, until ctx is done. l and the
// address may be proxy sockets.
func Relay(ctx context.Context, l net.Listener, to string) error {
	return Serve(ctx, l, func(ctx context.Context, client net.Conn) {
		withConn(ctx, client, to, func(app net.Conn) {
			if l.Addr().Network() == "unix" {
				_, _ = io.WriteString(client, accepted) // on an error the client has closed
			}
			copyBoth(client, app, app, client)
		})
	})
}

// copyBoth copies data in both directions until both sides are done.
func copyBoth(client, app net.Conn, toApp, toClient io.Writer) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(toClient, app)
		closeWrite(client)
	}()
	_, _ = io.Copy(toApp, client)
	closeWrite(app)
	<-back
}
