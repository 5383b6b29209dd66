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

// NotPublic is the reason why a host without a public address is refused.
const NotPublic = "its address is not public"

var (
	errInside = errors.New(NotPublic)
	errNever  = errors.New("its address is that of a cloud's metadata or of the engine's machine, or reserved, " +
		"and is never allowed")
	errTunnelIdle = errors.New("it was silent for too long")
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
	x.Status = http.StatusOK
	x.In, x.Out, err = accept(x.ctx, x.w, far, span(x.Limits.IdleMS))
	x.Aborted = errors.Is(err, errClient)
	if err != nil && !x.Aborted {
		x.Cut, x.reason = true, err.Error()
	}
}

// accept responds to CONNECT with a tunnel to far, and closes it at its end.
func accept(ctx context.Context, w http.ResponseWriter, far net.Conn, idle time.Duration) (up, down int64, err error) {
	defer far.Close()
	near, early, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot hijack the connection: %w", err)
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return 0, 0, errClient
	}
	return tunnel(ctx, near, far, early.Reader, idle)
}

// tunnel copies in both directions until one side ends, or both are silent. It returns the bytes in
// each direction. early reads from near, including bytes that were read ahead.
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
		n, _ = io.Copy(heard, from) // the error of a peer does not matter
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

// Dialer connects to registries. The zero Dialer only allows public addresses.
type Dialer struct {
	Not   []netip.Addr          // refused even if public: the engine's machine
	Also  func(netip.Addr) bool // allowed even if not public; nil for none
	Roots *x509.CertPool        // for a proxy with TLS

	proxy func(*url.URL) (*url.URL, error) // nil for none
}

// open connects to "host:port", through a proxy if there is one. It checks each address just before
// the connection, so that a second DNS response cannot lead elsewhere. With private it also allows
// private addresses. A proxy resolves names itself: then a name is allowed if it does not resolve
// here, or if all its addresses are allowed.
func (d Dialer) open(ctx context.Context, target string, private bool) (conn net.Conn, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot connect to %q: %w", target, err)
		}
	}()
	var proxy *url.URL
	if d.proxy != nil {
		proxy, err = d.proxy(&url.URL{Scheme: "https", Host: target})
	}
	if err == nil && proxy != nil {
		err = d.resolves(ctx, target, private)
	}
	switch {
	case err != nil:
		return nil, err
	case proxy != nil:
		return d.through(ctx, proxy, target)
	}
	outside := net.Dialer{Control: func(_, at string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(at)
		if err != nil {
			return errInside
		}
		return d.check(to.Addr(), private)
	}}
	return outside.DialContext(ctx, "tcp", target)
}

// resolves fails if a name resolves here to an address that is not allowed.
func (d Dialer) resolves(ctx context.Context, target string, private bool) error {
	host, _, err := net.SplitHostPort(target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil //nolint:nilerr // in a company network often only the proxy resolves outside names
	}
	for _, a := range addrs {
		if err := d.check(a, private); err != nil {
			return err
		}
	}
	return nil
}

// lookupTime bounds a lookup of a name that a proxy resolves again.
const lookupTime = 5 * time.Second

// check fails unless an address is allowed: it is public, in Also, or, with private, private, and it
// is not in Not.
func (d Dialer) check(a netip.Addr, private bool) error {
	switch {
	case private && (slices.Contains(d.Not, a.Unmap()) || !isPublic(a) && !isPrivate(a)):
		return errNever
	case private, (isPublic(a) || d.Also != nil && d.Also(a)) && !slices.Contains(d.Not, a.Unmap()):
		return nil
	}
	return errInside
}

// metadata are addresses in private ranges at which clouds serve the secrets of a machine.
var metadata = []string{"100.100.100.200/32", "fd00:ec2::/32", "fd20:ce::/32"}

// isPrivate reports whether an address is in a range for private networks. Loopback, link-local (with
// most clouds' metadata) and metadata are not private.
func isPrivate(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	within := func(p string) bool { return netip.MustParsePrefix(p).Contains(a) }
	return (a.IsPrivate() || within("100.64.0.0/10")) && !slices.ContainsFunc(metadata, within)
}

// inside are addresses of the machine, its network or its cloud, in addition to those that netip
// recognizes. It contains IPv6 addresses that stand for an IPv4 address: a name with one of them also
// has the other. It does not contain the ranges for documentation, which some laboratories use for
// their registries.
var inside = []string{
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
	"168.63.129.16/32", // a cloud's host, at a public address
	"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2002::/16", "5f00::/16", "fec0::/10",
}

// isPublic reports whether an address is on the internet. Private, loopback, link-local (with most
// clouds' metadata), multicast and reserved addresses are not.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	// IsGlobalUnicast excludes loopback, link-local and the unspecified address.
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(inside, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
}
