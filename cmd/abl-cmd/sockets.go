//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"strconv"
	"strings"

	"abl/internal/helper"
	"abl/internal/witness"
)

// place is an address on which a holder listens, with its handler.
type place struct {
	at    string // an address, or the path of a socket
	serve func(context.Context, net.Listener) error
}

// places returns the addresses on which a holder accepts connections to the app.
func (s started) places() (all []place, err error) {
	for _, pass := range s.pass {
		from, to, ok := strings.Cut(pass, "=")
		if !ok {
			return nil, fmt.Errorf("cannot relay %q: want FROM=TO", pass)
		}
		all = append(all, place{from, func(ctx context.Context, l net.Listener) error { return witness.Relay(ctx, l, to) }})
	}
	if from, to, ok := strings.Cut(s.watch, "="); ok {
		watched, err := watching(to, s.record, s.in)
		if err != nil {
			return nil, err
		}
		watched.Bytes = s.bytes
		all = append(all, place{from, watched.Serve})
	}
	from, status, null := strings.Cut(s.null, "=")
	if line, ok := strings.CutPrefix(status, "line:"); ok {
		all = append(all, place{from, func(ctx context.Context, l net.Listener) error {
			return witness.SendLine(ctx, s.behind(ctx, l, helper.AppSocket), line)
		}})
	} else if null {
		code, err := strconv.Atoi(status)
		if err != nil {
			return nil, fmt.Errorf("cannot respond with status %q: want a number", status)
		}
		all = append(all, place{from, func(ctx context.Context, l net.Listener) error {
			return witness.Null(ctx, s.behind(ctx, l, helper.AppSocket), code)
		}})
	}
	if s.commands != "" {
		all = append(all, place{s.commands, func(ctx context.Context, l net.Listener) error {
			return witness.Commands(ctx, s.behind(ctx, l, helper.BrokerSocket), s.ran)
		}})
	}
	return all, nil
}

// behind returns a listener whose connections pass through a socket, as those to an app do, if there is a
// folder for sockets.
func (s started) behind(ctx context.Context, l net.Listener, socket string) net.Listener {
	if s.sockets == "" {
		return l
	}
	return witness.Behind(ctx, l, path.Join(s.sockets, socket))
}

// watching returns the proxy before the app at the address to. It records exchanges, and alters responses if
// there is a file for that.
func watching(to, record, altering string) (*witness.Proxy, error) {
	file, err := os.OpenFile(record, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the record: %w", err)
	}
	seen := witness.Record{To: file}
	watched := &witness.Proxy{To: to, Seen: seen.Add}
	if altering != "" {
		what, err := helper.Read[witness.Altering](altering)
		if err != nil {
			return nil, fmt.Errorf("cannot read how to alter responses: %w", err)
		}
		watched.Altering = &what
	}
	return watched, nil
}

// listen listens on an address or on a socket, which replaces the socket of an earlier holder. All users may
// connect: abl decides which containers get the socket.
func listen(ctx context.Context, at string) (net.Listener, error) {
	if !path.IsAbs(at) {
		return (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	}
	const anybody fs.FileMode = 0o666
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", at)
	if err == nil {
		err = os.Chmod(at, anybody)
	}
	return l, err
}
