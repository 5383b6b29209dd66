package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
)

// Log is what a gateway told from its beginning to its end.
type Log struct {
	Entries []gateway.Entry
	Lost    int64 // lines that are missing between two that are there, or at the end
}

// ErrGone means that a gateway's box and its log are gone, so that nobody knows
// what passed it.
var ErrGone = errors.New("the gateway was removed by somebody else")

// Close ends the gateway, keeps its log in the call's record and removes the box,
// in this order, so that a repetition after any crash comes to the same log.
func (s Sidecar) Close(ctx context.Context) (Log, error) {
	if kept, err := os.ReadFile(s.Keep); !errors.Is(err, fs.ErrNotExist) { // it was closed before
		return parse(kept), errors.Join(err, s.Engine.Remove(ctx, s.Name))
	}
	err := s.Engine.Stop(ctx, s.Name, grace)
	if errors.Is(err, sandbox.ErrNotFound) {
		return Log{}, ErrGone
	}
	if err != nil {
		return Log{}, err
	}
	data, err := s.Engine.Logs(ctx, s.Name, maxLog)
	if err != nil {
		return Log{}, err
	}
	// Its own lines are safe; those that a dying program adds may be anything.
	data = []byte(s.Safe.Whole(string(data)))
	if err := hostfs.Write(s.Keep, data, 0o644); err != nil {
		return Log{}, fmt.Errorf("cannot keep the gateway's log: %w", err)
	}
	failpoint.Here("gateway.kept")
	return parse(data), s.Engine.Remove(ctx, s.Name)
}

// forget removes what stands under the call's name and never served it.
func (s Sidecar) forget(ctx context.Context) error {
	if err := os.Remove(s.Keep); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot put an earlier log away: %w", err)
	}
	return s.Engine.Remove(ctx, s.Name)
}

func (s Sidecar) log(ctx context.Context) ([]gateway.Entry, error) {
	data, err := s.Engine.Logs(ctx, s.Name, maxLog)
	return parse(data).Entries, err
}

// parse reads the lines. Only the gateway writes them; a line that is none of its
// own is what a dying program said, and counts as lost.
func parse(data []byte) (l Log) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	next, ended := int64(1), false
	for lines.Scan() {
		var e gateway.Entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Seq < next {
			continue
		}
		l.Lost += e.Seq - next
		next = e.Seq + 1
		ended = e.Kind == gateway.Ended
		l.Entries = append(l.Entries, e)
	}
	if !ended {
		l.Lost++ // it was killed, and what passed it at that moment has no line
	}
	return l
}

// mostHosts is how many refused hosts are named.
const mostHosts = 20

// Advice names the hosts that a role's tools asked for in vain, and the line that allows
// those that may be. What a role writes in a request's target is a host here only if it
// could be one.
func Advice(log []gateway.Entry) (notes []string) {
	times := map[string]int{}
	var refused []gateway.Entry
	for _, e := range log {
		if e.Req != nil && e.Req.Refused && e.Req.Host != "" {
			if times[e.Req.Host]++; times[e.Req.Host] == 1 {
				refused = append(refused, e)
			}
		}
	}
	var open []string
	for _, e := range refused[:min(len(refused), mostHosts)] {
		host := e.Req.Host
		note := "the gateway refused " + host
		if n := times[host]; n > 1 {
			note += fmt.Sprintf(", %d times", n)
		}
		switch {
		case !strings.HasSuffix(e.Reason, gateway.NotAllowed):
			note += ": " + e.Reason
		case !config.Allowable(host):
			note += ": no name of a host in a domain"
		default:
			open = append(open, host)
		}
		notes = append(notes, note)
	}
	if more := len(refused) - mostHosts; more > 0 {
		notes = append(notes, fmt.Sprintf("the gateway refused %d more hosts", more))
	}
	if len(open) > 0 {
		notes = append(notes, "to allow what the gateway refused, add to .abl/config.yaml: network: {allow: ["+strings.Join(open, ", ")+"]}")
	}
	return notes
}
