package gateway

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"abl/orchestrator/gateway/tunnel"
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
	ctx, cancel := context.WithTimeoutCause(x.call.ctx, span(x.limits.TunnelMS), errTime)
	defer cancel()
	far, err := x.dialer.Open(ctx, x.verdict.Connect)
	if err != nil {
		if errors.Is(err, tunnel.ErrInside) {
			x.refuse(http.StatusForbidden, err.Error())
			return
		}
		x.line.Reason = err.Error()
		x.fail(http.StatusBadGateway, x.line.Reason)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		x.line.Reason = "cannot take the connection over: " + err.Error()
		return
	}
	x.line.Req.Status = http.StatusOK
	if _, err := near.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")); err != nil {
		near.Close()
		x.line.Req.Aborted = true
		return
	}
	bounds := tunnel.Bounds{Bytes: x.limits.Tunnel, Idle: span(x.limits.IdleMS)}
	x.line.Req.In, x.line.Req.Out, err = tunnel.Relay(ctx, early{near, buffered.Reader}, far, bounds)
	if err != nil {
		x.line.Req.Cut, x.line.Reason = true, err.Error()
	}
}

// early is a connection of which some bytes were read before it was taken over.
type early struct {
	net.Conn
	from *bufio.Reader
}

func (e early) Read(p []byte) (int, error) { return e.from.Read(p) }

// CloseWrite ends one direction.
func (e early) CloseWrite() error {
	if c, ok := e.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return net.ErrClosed
}
