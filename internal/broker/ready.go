package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"abl/internal/helper"
)

const (
	probeEvery   = 50 * time.Millisecond
	probeTimeout = 2 * time.Second
	// An app that answers on loopback for so many probes in a row, and on its
	// own address for none, will not change its mind.
	loopbackProbes = 40

	// ownAddress is loopback's too, and an app that listens on 127.0.0.1 alone is not there:
	// a container may have no other address.
	ownAddress = "127.0.0.2"

	loopbackOnly = "the app listens on 127.0.0.1 only; it must listen on 0.0.0.0 to be reached from another container"
)

// answer is what one probe saw; detail never holds a byte that the app sent.
type answer struct {
	ready   bool
	refused bool
	detail  string
}

// wait probes until the app is ready at host, as others reach it, has ended, or ctx is
// over, and says what the last probe saw.
func wait(ctx context.Context, app helper.App, host string, ended <-chan struct{}) answer {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	last, local := answer{detail: "no answer"}, 0
	for {
		switch a := probe(ctx, app, host); {
		case a.ready:
			return a
		case a.refused && (probe(ctx, app, "127.0.0.1").ready || probe(ctx, app, "::1").ready):
			last, local = answer{detail: loopbackOnly}, local+1
		case !over(ctx):
			last, local = a, 0
		}
		if local >= loopbackProbes {
			return last
		}
		select {
		case <-ended:
			return last
		case <-ctx.Done():
			return last
		case <-tick.C:
		}
	}
}

// over says whether ctx has ended or is about to: a dialer gives up at the
// deadline by a clock of its own, and what it says then is about the deadline.
func over(ctx context.Context) bool {
	deadline, has := ctx.Deadline()
	return ctx.Err() != nil || has && !time.Now().Before(deadline)
}

// probe asks once.
func probe(ctx context.Context, app helper.App, host string) answer {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	port := strconv.Itoa(app.Port)
	at, what := net.JoinHostPort(host, port), "port "+port
	if app.Path == "" {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", at)
		if err != nil {
			return refusal(what, err)
		}
		conn.Close()
		return answer{ready: true, detail: what + " is open"}
	}
	what = "GET " + app.Path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at+app.Path, nil)
	if err != nil {
		return answer{detail: what + ": not a path that can be asked for"}
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return refusal(what, err)
	}
	resp.Body.Close()
	return answer{ready: resp.StatusCode < 500, detail: fmt.Sprintf("%s answered %d", what, resp.StatusCode)}
}

// refusal words a failed probe without quoting what came over the network.
func refusal(what string, err error) answer {
	why := "the answer is not HTTP"
	var dns *net.DNSError
	var late net.Error
	var number syscall.Errno
	switch {
	case errors.As(err, &dns):
		why = "no such host"
	case errors.As(err, &late) && late.Timeout():
		why = "no answer"
	case errors.As(err, &number):
		why = number.Error()
	}
	return answer{refused: number == syscall.ECONNREFUSED, detail: what + ": " + why}
}
