// Package sidecar runs the gateway as a box of its own beside a call's: it makes
// the box, feeds it the setup, and in the end keeps its log with the call. What passes
// a gateway is not decided here, and nothing of this runs beside a role.
package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
)

// Sidecar is the gateway of one call.
type Sidecar struct {
	Engine sandbox.Engine
	Name   string // of the box
	Image  string
	Inside string // the role's network, on which it answers as helper.GatewayAlias
	Way    sandbox.Endpoint
	Labels map[string]string
	Keep   string            // file that takes the log in the end
	Safe   *redact.Sanitizer // knows what may not stand there
}

// user differs from every role's and from the holder's.
const user = "10010:10010"

const (
	watchEvery = 2 * time.Second

	grace   = 5 * time.Second  // for the last requests to write their lines
	warmUp  = 10 * time.Second // until it listens
	maxLog  = 32 << 20         // bytes of log that are read; the engine keeps less
	lookFor = 10 * time.Millisecond
)

// Open makes the box and returns once it listens. A box that an earlier abl left
// under the name belongs to a call that never ran.
func (s Sidecar) Open(ctx context.Context, setup gateway.Setup) error {
	setup.Listen = ":" + strconv.Itoa(helper.GatewayPort)
	if err := s.forget(ctx); err != nil {
		return err
	}
	box := s.box()
	if _, err := s.Engine.Create(ctx, box); err != nil {
		return err
	}
	proof, err := s.Engine.Prove(ctx, box) // it is about to hold the keys
	if err == nil {
		err = proof.Err()
	}
	if err == nil {
		failpoint.Here("gateway.created")
		err = s.Engine.Start(ctx, s.Name)
	}
	if err == nil {
		err = s.feed(ctx, setup)
	}
	if err == nil {
		err = s.listens(ctx)
	}
	if err != nil {
		return s.why(ctx, fmt.Errorf("box %q: %w", s.Name, err))
	}
	failpoint.Here("gateway.open")
	return nil
}

// Watch calls look with what the call has used by the gateway's newest line, until ctx ends.
// It keeps that line, in case the gateway is removed. What cannot be read now is read later.
func (s Sidecar) Watch(ctx context.Context, look func(gateway.Sum)) {
	for last := int64(0); proc.Pause(ctx, watchEvery) == nil; {
		last, _ = s.see(ctx, last, look)
	}
}

// see looks at the newest line if it comes after the line last. It returns its number.
func (s Sidecar) see(ctx context.Context, last int64, look func(gateway.Sum)) (int64, error) {
	log, err := s.log(ctx)
	sum := log.Sum()
	if err != nil || sum == nil {
		return last, err
	}
	newest := log.Entries[len(log.Entries)-1]
	if newest.Seq <= last {
		return last, nil
	}
	look(*sum)
	line, err := json.Marshal(newest)
	if err == nil {
		err = hostfs.Write(s.seen(), []byte(s.Safe.Whole(string(line)+"\n")), 0o644)
	}
	return newest.Seq, err
}

// Seen returns what a call has used by the newest line that Watch saw, nil without one. keep is the
// Sidecar's Keep.
func Seen(keep string) *gateway.Sum {
	data, err := readLog(Sidecar{Keep: keep}.seen())
	if err != nil {
		return nil
	}
	return parse(data).Sum()
}

// seen is the file with the newest line that Watch saw.
func (s Sidecar) seen() string { return s.Keep + ".seen" }

// feed sends the gateway one line.
func (s Sidecar) feed(ctx context.Context, order any) error {
	line, _ := json.Marshal(order) // strings and numbers always encode
	return s.Engine.Feed(ctx, s.Name, append(line, '\n'))
}

func (s Sidecar) box() sandbox.Box {
	return sandbox.Box{
		Name: s.Name, Image: s.Image, User: user, Argv: []string{helper.Bin + "/" + helper.Gateway}, Stdin: true, Labels: s.Labels,
		Reach:  sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: s.Inside, Aliases: []string{helper.GatewayAlias}}, s.Way}, Resolve: true},
		Limits: sandbox.Limits{Memory: 256 << 20, CPUs: 2, Pids: 64, OpenFile: 4096, FileSize: 1 << 20},
	}
}

// listens waits for the ready line.
func (s Sidecar) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, warmUp)
	defer cancel()
	for {
		log, err := s.log(ctx)
		if err != nil || len(log.Entries) > 0 && log.Entries[0].Kind == gateway.Ready {
			return err
		}
		if st, err := s.Engine.Status(ctx, s.Name); err != nil || st.State == sandbox.Exited {
			return errors.Join(err, fmt.Errorf("it ended with code %d", st.ExitCode))
		}
		if err := proc.Pause(ctx, lookFor); err != nil {
			return fmt.Errorf("it does not listen: %w", err)
		}
	}
}

// why adds what the gateway itself said, and takes its box away.
func (s Sidecar) why(ctx context.Context, err error) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmUp)
	defer cancel()
	if words, lerr := s.Engine.Logs(late, s.Name, 2<<10); lerr == nil && len(words) > 0 {
		err = fmt.Errorf("%w; it said: %s", err, words)
	}
	return errors.Join(err, s.Engine.Remove(late, s.Name))
}

// Bound gives the gateway new bounds for its call.
func (s Sidecar) Bound(ctx context.Context, b gateway.Budget) error {
	return s.order(ctx, gateway.Command{Budget: &b})
}

// Renew gives the gateway a new key for its provider.
func (s Sidecar) Renew(ctx context.Context, key gateway.Secret) error {
	return s.order(ctx, gateway.Command{Key: key})
}

// order sends the gateway a command. One that has ended has no use for it.
func (s Sidecar) order(ctx context.Context, c gateway.Command) error {
	st, err := s.Engine.Status(ctx, s.Name)
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && st.State != sandbox.Running {
		return nil
	}
	if err != nil {
		return err
	}
	return s.feed(ctx, c)
}

// Log is what a gateway wrote.
type Log struct {
	Entries []gateway.Entry
	Ended   bool // the newest line is the gateway's last one
}

// Sum returns what the newest line says that the call has used, nil if nothing is known.
func (l Log) Sum() *gateway.Sum {
	if len(l.Entries) == 0 {
		return nil
	}
	return l.Entries[len(l.Entries)-1].Sum
}

// ErrGone means that a gateway's box and its log are gone. What Watch saw of the log is left.
var ErrGone = errors.New("the gateway was removed by somebody else")

// Close ends the gateway, keeps its log in the call's record and removes the box,
// in this order, so that a repetition after any crash comes to the same log.
func (s Sidecar) Close(ctx context.Context) (Log, error) {
	// Where its log is kept, it was closed before.
	kept, err := readLog(s.Keep)
	if !errors.Is(err, hostfs.ErrAbsent) {
		return parse(kept), errors.Join(err, s.drop(ctx))
	}
	seen, err := readLog(s.seen())
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return Log{}, fmt.Errorf("cannot read what was seen of the gateway's log: %w", err)
	}
	err = s.Engine.Stop(ctx, s.Name, grace)
	if errors.Is(err, sandbox.ErrNotFound) {
		return parse(seen), ErrGone
	}
	if err != nil {
		return Log{}, err
	}
	data, err := s.Engine.Logs(ctx, s.Name, maxLog)
	if err != nil {
		return Log{}, err
	}
	// Its own lines are safe; those that a dying program adds may be anything.
	// A machine that lost its power may have lost lines that were seen, or half of one.
	if all := slices.Concat(data, []byte("\n"), seen); len(parse(all).Entries) > len(parse(data).Entries) {
		data = all
	}
	data = []byte(s.Safe.Whole(string(data)))
	if err := hostfs.Write(s.Keep, data, 0o644); err != nil {
		return Log{}, fmt.Errorf("cannot keep the gateway's log: %w", err)
	}
	failpoint.Here("gateway.kept")
	return parse(data), s.drop(ctx)
}

// forget removes what stands under the call's name and never served it.
func (s Sidecar) forget(ctx context.Context) error {
	return errors.Join(removeFile(s.Keep), s.drop(ctx))
}

// drop removes the box, and what was seen of its log.
func (s Sidecar) drop(ctx context.Context) error {
	return errors.Join(removeFile(s.seen()), s.Engine.Remove(ctx, s.Name))
}

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove an earlier log: %w", err)
	}
	return nil
}

func (s Sidecar) log(ctx context.Context) (Log, error) {
	data, err := s.Engine.Logs(ctx, s.Name, maxLog)
	return parse(data), err
}

// parse reads the lines. Only the gateway writes them; a line that is none of its
// own is what a dying program said.
func parse(data []byte) (l Log) {
	next := int64(1)
	for line := range bytes.Lines(data) {
		var e gateway.Entry
		if json.Unmarshal(line, &e) != nil || e.Seq < next {
			continue
		}
		next = e.Seq + 1
		l.Ended = e.Kind == gateway.Ended
		l.Entries = append(l.Entries, e)
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
		case e.Reason == gateway.NotPublic && config.Allowable(host):
			note += fmt.Sprintf(": %s; if you trust it, write {host: %q, private: true} into network.allow", e.Reason, host)
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

// readLog reads a log that was kept. A damaged file reads as empty, which lacks at least one line.
func readLog(path string) ([]byte, error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 2*maxLog)
	if errors.Is(err, hostfs.ErrNotRegular) || errors.Is(err, hostfs.ErrTooLarge) {
		return nil, nil
	}
	return data, err
}
