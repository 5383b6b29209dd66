// Package witness stands at the app's door while the saved tests are tested: as a proxy
// that passes every byte on and keeps what it saw, or as an app that answers everything
// with nothing. It knows HTTP/1, and what a contract names of an exchange; what that
// proves is decided elsewhere.
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

// Bounds on what is held at a time, whatever the app and the tests do.
const (
	maxConns = 256      // further ones wait
	maxHead  = 64 << 10 // bytes of one request's or answer's head; a longer one is passed on unread
)

// Serve hands each connection to handle until ctx ends, and then ends them all.
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
			return fmt.Errorf("cannot go on serving: %w", err)
		case err != nil:
			<-places
			time.Sleep(10 * time.Millisecond) // out of descriptors, which passes
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

// Null answers every request with the same status and no body, until ctx ends. What is no
// HTTP/1 hears nothing. It looks at no more of a request than an answer needs.
func Null(ctx context.Context, l net.Listener, status int) error {
	reply := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Length: 0\r\n\r\n", status, http.StatusText(status))
	return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
		client := newSide(conn)
		for {
			req, err := client.request()
			if err == nil && req.Header.Get("Expect") != "" { // the client asks before it sends a body
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

// Say tells everybody who connects a line, or nothing, and then ends: what stands in the place
// of an app that speaks no HTTP.
func Say(ctx context.Context, l net.Listener, line string) error {
	return Serve(ctx, l, func(_ context.Context, conn net.Conn) {
		_, _ = io.WriteString(conn, line)
		closeWrite(conn)
		_, _ = io.Copy(io.Discard, conn)
	})
}

// Commands stands in for the broker: every command has been run and ended with
// exit code 0, without output. So tests that prepare the system before anything
// else come to what they test. A run of the app itself is answered with ran, or not
// at all where that is empty.
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
			refuse(conn)
			return
		}
		_, err = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
			"Connection: close\r\n\r\n%s", len(reply), reply)
		if err == nil {
			closeWrite(conn)
			_, _ = io.Copy(io.Discard, conn) // its input, lest the reply is lost in a reset
		}
	})
}

// dialTime bounds how long the app may take to accept a connection.
const dialTime = 10 * time.Second

// taken is what a door's socket says once the app has taken the connection behind it.
const taken = "+"

// dial connects to an address, a path being that of a door's socket. There it fails as
// it would at the app's own port: at once, where nobody listens behind the door.
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
	if _, err := io.ReadFull(conn, make([]byte, len(taken))); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// refuse ends a connection as if nobody had listened, as far as that can be done when
// it has been taken.
func refuse(conn net.Conn) {
	if far, ok := conn.(through); ok {
		defer far.client.Close()
		conn = far.client
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

// reach has do pass on what comes of a client to an address and back, and is false where
// nobody listens.
func reach(ctx context.Context, client net.Conn, to string, do func(app net.Conn)) bool {
	app, err := dial(ctx, to)
	if err != nil {
		refuse(client)
		return false
	}
	defer app.Close()
	defer context.AfterFunc(ctx, func() { app.Close() })()
	do(app)
	return true
}

// Relay passes connections on to an address, byte by byte, until ctx ends. l or that
// address may be a door's socket.
func Relay(ctx context.Context, l net.Listener, to string) error {
	return Serve(ctx, l, func(ctx context.Context, client net.Conn) {
		reach(ctx, client, to, func(app net.Conn) {
			if l.Addr().Network() == "unix" {
				_, _ = io.WriteString(client, taken) // else the client has gone
			}
			both(client, app, app, client)
		})
	})
}

// both passes on what comes from a client and from the app, until both have ended.
func both(client, app net.Conn, toApp, toClient io.Writer) {
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
