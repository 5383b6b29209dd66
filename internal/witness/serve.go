// Package witness is there while the saved tests are tested: at the app's door, as
// an app that answers everything with nothing or as a proxy that passes every byte
// on, and behind the tests, as the reader of what their run.sh printed. It knows
// HTTP/1 and TAP; what they prove is decided elsewhere.
//
// run.sh prints TAP 13 or 14 with one line for each contract. It was written by an
// agent, and may quote what the system under test answered; so a line counts as ok
// only when nothing about it is in doubt, and what casts doubt on the whole output
// is said.
package witness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Bounds on what is held at a time, whatever the app and the tests do.
const (
	maxConns = 256      // further ones wait
	maxHead  = 64 << 10 // bytes of one request's or answer's head; a longer one is passed on unread
)

// serve hands each connection to handle until ctx ends, and then ends them all.
func serve(ctx context.Context, l net.Listener, handle func(context.Context, net.Conn)) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
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
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			handle(ctx, conn)
		})
	}
}
