package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// ErrInside is what a name is refused with that leads to no public address.
var ErrInside = errors.New("it resolves to no public address")

// What ends a tunnel before its two sides do.
var (
	errTunnelBytes = errors.New("more bytes than a tunnel may carry")
	errTunnelIdle  = errors.New("silent for too long")
	errTunnelTime  = errors.New("open for too long")
)

// connect opens a tunnel to a registry.
func (x *exchange) connect() {
	select {
	case x.tunnels <- struct{}{}:
		defer func() { <-x.tunnels }()
	default:
		x.refuse(http.StatusServiceUnavailable, fmt.Sprintf("%d tunnels are open", cap(x.tunnels)))
		return
	}
	ctx, cancel := context.WithTimeoutCause(x.ctx, span(x.limits.TunnelMS), errTunnelTime)
	defer cancel()
	far, err := x.dialer.open(ctx, x.verdict.Connect)
	if errors.Is(err, ErrInside) {
		x.refuse(http.StatusForbidden, err.Error())
		return
	}
	if err != nil {
		x.line.Reason = err.Error()
		x.fail(http.StatusBadGateway, x.line.Reason)
		return
	}
	defer far.Close()
	near, early, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.line.Reason = "cannot take the connection over: " + err.Error()
		return
	}
	defer near.Close()
	x.line.Req.Status = http.StatusOK
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		x.line.Req.Aborted = true
		return
	}
	t := tunnel{near: near, early: early.Reader, far: far, bytes: x.limits.Tunnel, idle: span(x.limits.IdleMS)}
	if x.line.Req.In, x.line.Req.Out, err = t.relay(ctx); err != nil {
		x.line.Req.Cut, x.line.Reason = true, err.Error()
	}
}

// tunnel is two connections with what they may carry.
type tunnel struct {
	near, far net.Conn
	early     io.Reader // reads from near what came before it was taken over, and the rest
	bytes     int64     // both ways together
	idle      time.Duration
}

// relay copies both ways until one side ends or a bound is reached, and says how many
// bytes went up and came down.
func (t tunnel) relay(ctx context.Context) (up, down int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(t.idle, func() { cancel(errTunnelIdle) })
	defer idle.Stop()
	defer context.AfterFunc(ctx, func() { t.near.Close(); t.far.Close() })()
	left := &atomic.Int64{}
	left.Store(t.bytes)
	pipe := func(to net.Conn, from io.Reader, n *int64) {
		counted := writer(func(p []byte) (int, error) {
			if left.Add(-int64(len(p))) < 0 {
				cancel(errTunnelBytes)
				return 0, errTunnelBytes
			}
			idle.Reset(t.idle)
			written, err := to.Write(p)
			*n += int64(written)
			return written, err
		})
		_, _ = io.Copy(counted, from) // how a peer ends is its own affair
		if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			to.Close()
		}
	}
	var both sync.WaitGroup
	both.Go(func() { pipe(t.far, t.early, &up) })
	both.Go(func() { pipe(t.near, t.far, &down) })
	both.Wait()
	return up, down, context.Cause(ctx)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Dialer connects with registries. The zero Dialer refuses all but public addresses.
type Dialer struct {
	Not    []netip.Addr          // refused although they may be public: the engine's machine
	Public func(netip.Addr) bool // nil is isPublic
}

// open connects with "host:port". Each address is looked at when it is about to be
// connected with, so that a second answer of the name's server cannot lead elsewhere.
func (d Dialer) open(ctx context.Context, target string) (net.Conn, error) {
	outside := net.Dialer{Control: func(_, at string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(at); err != nil || !d.passes(to.Addr()) {
			return ErrInside
		}
		return nil
	}}
	conn, err := outside.DialContext(ctx, "tcp", target)
	if errors.Is(err, ErrInside) {
		err = ErrInside // without the address
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect with %q: %w", target, err)
	}
	return conn, nil
}

// passes says whether an address is public and nobody's in Not.
func (d Dialer) passes(a netip.Addr) bool {
	public := d.Public
	if public == nil {
		public = isPublic
	}
	return public(a) && !slices.Contains(d.Not, a.Unmap())
}

// inside are addresses that lead back into a machine, its network or its cloud,
// beyond those that netip knows as such. The ranges for documentation are no part
// of it: they lead nowhere, but for laboratories that have their registries there. IPv6
// addresses that stand for an IPv4 one are: a name with such a one has the other, too.
var inside = []string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
	"168.63.129.16/32", // a cloud's host, at a public address
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "5f00::/16", "fec0::/10",
}

// isPublic says whether an address is one of the internet's. Private, loopback,
// link-local (the clouds' metadata among them), multicast and reserved ones are not.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() { // which leaves loopback, link-local and none at all
		return false
	}
	return !slices.ContainsFunc(inside, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}
