package gateway

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// NotPublic is the reason with which a host is refused whose address is not public.
const NotPublic = "it has no public address, and no other passes"

var (
	errInside     = errors.New(NotPublic)
	errNever      = errors.New("its address is a cloud's metadata or the engine's machine, or reserved, and never passes")
	errTunnelIdle = errors.New("silent for too long")
)

// connect opens a tunnel to a registry.
func (x *exchange) connect() {
	private := slices.ContainsFunc(x.Private, func(one string) bool { return strings.EqualFold(one, x.Host) })
	far, err := x.dialer.open(x.ctx, x.Host, private)
	for _, refusal := range []error{errInside, errNever} {
		if errors.Is(err, refusal) {
			x.deny(http.StatusForbidden, refusal.Error()) // without the address
			return
		}
	}
	if err != nil {
		x.reason = err.Error()
		x.fail(http.StatusBadGateway, x.reason)
		return
	}
	defer far.Close()
	near, early, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.reason = "cannot take the connection over: " + err.Error()
		return
	}
	defer near.Close()
	x.Status = http.StatusOK
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		x.Aborted = true
		return
	}
	if x.In, x.Out, err = tunnel(x.ctx, near, far, early.Reader, span(x.Limits.IdleMS)); err != nil {
		x.Cut, x.reason = true, err.Error()
	}
}

// tunnel copies both ways until one side ends, or both are silent, and says how many
// bytes went up and came down. early reads what came from near before it was taken over,
// and the rest.
func tunnel(ctx context.Context, near, far net.Conn, early io.Reader, idle time.Duration) (up, down int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(idle, func() { cancel(errTunnelIdle) })
	defer silence.Stop()
	defer context.AfterFunc(ctx, func() { near.Close(); far.Close() })()
	pipe := func(to net.Conn, from io.Reader) (n int64) {
		heard := writer(func(p []byte) (int, error) {
			silence.Reset(idle)
			return to.Write(p)
		})
		n, _ = io.Copy(heard, from) // how a peer ends is its own affair
		if half, ok := to.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
			to.Close()
		}
		return n
	}
	var both sync.WaitGroup
	both.Go(func() { up = pipe(far, early) })
	both.Go(func() { down = pipe(near, far) })
	both.Wait()
	return up, down, context.Cause(ctx)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// Dialer connects with registries. The zero Dialer refuses all but public addresses.
type Dialer struct {
	Not   []netip.Addr          // refused although they may be public: the engine's machine
	Also  func(netip.Addr) bool // passes although it is not public; nil for none
	Roots *x509.CertPool        // that a proxy with TLS is trusted by

	proxy func(*url.URL) (*url.URL, error) // nil for none
}

// open connects with "host:port", by way of a proxy if there is one for it. Each address is looked
// at when it is about to be connected with, so that a second answer of the name's server cannot
// lead elsewhere. With private its private addresses pass, too. A proxy resolves names itself: then a name passes if it has no address here, or
// only such as pass.
func (d Dialer) open(ctx context.Context, target string, private bool) (net.Conn, error) {
	if proxy, err := d.proxyFor(target); err != nil || proxy != nil {
		if err == nil {
			err = d.resolves(ctx, target, private)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot connect with %q: %w", target, err)
		}
		conn, err := d.through(ctx, proxy, target)
		if err != nil {
			return nil, fmt.Errorf("cannot connect with %q: %w", target, err)
		}
		return conn, nil
	}
	outside := net.Dialer{Control: func(_, at string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(at)
		if err != nil {
			return errInside
		}
		return d.check(to.Addr(), private)
	}}
	conn, err := outside.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, fmt.Errorf("cannot connect with %q: %w", target, err)
	}
	return conn, nil
}

// proxyFor returns the proxy for a tunnel, nil for none.
func (d Dialer) proxyFor(target string) (*url.URL, error) {
	if d.proxy == nil {
		return nil, nil
	}
	return d.proxy(&url.URL{Scheme: "https", Host: target})
}

// resolves refuses a name that has an address here which does not pass.
func (d Dialer) resolves(ctx context.Context, target string, private bool) error {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // behind a company's proxy outside names often resolve at the proxy only
	}
	for _, a := range addrs {
		if err := d.check(a, private); err != nil {
			return err
		}
	}
	return nil
}

// lookupTime bounds a look for the addresses of a name that a proxy resolves again.
const lookupTime = 5 * time.Second

// check returns why an address does not pass, nil if it does: it is public, one of Also, or, with
// private, a private one; and not in Not.
func (d Dialer) check(a netip.Addr, private bool) error {
	switch {
	case private && (slices.Contains(d.Not, a.Unmap()) || !isPublic(a) && !isPrivate(a)):
		return errNever
	case private, (isPublic(a) || d.Also != nil && d.Also(a)) && !slices.Contains(d.Not, a.Unmap()):
		return nil
	}
	return errInside
}

// metadata are addresses in private ranges at which clouds tell a machine its secrets.
var metadata = []string{"100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32"}

// isPrivate reports whether an address is in a range that companies use for themselves. Loopback,
// link-local (most clouds' metadata among them) and metadata are not.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	within := func(p string) bool { return netip.MustParsePrefix(p).Contains(a) }
	return (a.IsPrivate() || within("100.64.0.0/10")) && !slices.ContainsFunc(metadata, within)
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
	// This leaves loopback, link-local and none at all.
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(inside, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}
