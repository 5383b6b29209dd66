package witness

import (
	"context"
	"errors"
	"net"
	"sync"
)

// behind is a listener that passes each connection through a unix socket.
type behind struct {
	net.Listener
	ctx context.Context
	at  string // path of the socket, which exists only while a connection is made
	mu  sync.Mutex
}

// Behind returns a listener whose connections pass through a unix socket at a path, as those to an
// app do. Processes of the same network namespace see such sockets in /proc/net/unix. Without them
// tests could distinguish the app from its replacement.
func Behind(ctx context.Context, l net.Listener, at string) net.Listener {
	return &behind{Listener: l, ctx: ctx, at: at}
}

// Accept returns the far end of the next connection.
func (b *behind) Accept() (net.Conn, error) {
	client, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	near, far, err := b.pair()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	stop := context.AfterFunc(b.ctx, func() { client.Close() })
	go func() {
		defer stop()
		defer client.Close()
		defer near.Close()
		copyBoth(client, near, near, client)
	}()
	return through{far.(*net.UnixConn), client}, nil
}

// pair returns both ends of a new connection through the socket.
func (b *behind) pair() (near, far net.Conn, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, err := net.Listen("unix", b.at)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if near, err = net.Dial("unix", b.at); err != nil {
		return nil, nil, err
	}
	if far, err = l.Accept(); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return near, far, nil
}

// through is the far end of a connection. It has a reference to the client's connection.
type through struct {
	*net.UnixConn
	client net.Conn
}
