package witness

import (
	"context"
	"errors"
	"io"
	"net"
	"path"
	"time"
)

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
