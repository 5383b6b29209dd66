// Package sidecar runs the gateway of a call in a separate container: it creates the container, sends
// the setup to it, and stores its log with the call.
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
	"abl/internal/wording"
)

// Sidecar is the gateway of one call.
type Sidecar struct {
	Engine sandbox.Engine
	Name   string // of the container
	Image  string
	Inside string // the role's network, in which its name is helper.GatewayAlias
	Way    sandbox.Endpoint
	Labels map[string]string
	Keep   string            // the file for the log
	Safe   *redact.Sanitizer // removes secrets from the log
}

// user differs from the users of all roles and of the holder.
const user = "10010:10010"

const (
	watchEvery = 2 * time.Second

	grace   = 5 * time.Second  // for the last requests to write their lines
	warmUp  = 10 * time.Second // until it listens
	maxLog  = 32 << 20         // bytes of the log; the engine keeps less
	lookFor = 10 * time.Millisecond
)

// Open creates the container and returns when the gateway listens. It first removes a container of
// the same name, which belongs to a call that never ran.
func (s Sidecar) Open(ctx context.Context, setup gateway.Setup) error {
	setup.Listen = ":" + strconv.Itoa(helper.GatewayPort)
	if err := s.forget(ctx); err != nil {
		return err
	}
	c := sandbox.Container{Engine: s.Engine, Box: s.box()}
	if err := c.Make(ctx); err != nil { // before it gets the keys
		return err
	}
	failpoint.Here("gateway.created")
	err := c.Start(ctx)
	if err == nil {
		err = s.feed(ctx, setup)
	}
	if err == nil {
		err = s.listens(ctx)
	}
	if err != nil {
		return s.abandon(ctx, fmt.Errorf("container %q: %w", s.Name, err))
	}
	failpoint.Here("gateway.open")
	return nil
}

// Watch calls look with each new line of the gateway that has the usage, until ctx is done. It stores
// the newest line, in case the gateway is removed. It retries after an error.
func (s Sidecar) Watch(ctx context.Context, look func(gateway.Entry)) {
	for last := int64(0); proc.Pause(ctx, watchEvery) == nil; {
		last, _ = s.see(ctx, last, look)
	}
}

// see calls look with each line whose number is greater than last. It returns the newest number.
func (s Sidecar) see(ctx context.Context, last int64, look func(gateway.Entry)) (int64, error) {
	log, err := s.log(ctx)
	if err != nil || log.Sum() == nil {
		return last, err
	}
	newest := log.Entries[len(log.Entries)-1]
	if newest.Seq <= last {
		return last, nil
	}
	for _, e := range log.Entries {
		if e.Seq > last && e.Sum != nil {
			look(e)
		}
	}
	line, err := json.Marshal(newest)
	if err == nil {
		err = hostfs.Write(s.seen(), []byte(s.Safe.Whole(string(line)+"\n")), 0o644)
	}
	return newest.Seq, err
}

// Read returns the stored log of a closed gateway, or the newest line that Watch saw of a running one. It
// is empty if there is neither. keep is the Sidecar's Keep.
func Read(keep string) Log {
	data, err := readLog(keep)
	if errors.Is(err, hostfs.ErrAbsent) {
		data, err = readLog(Sidecar{Keep: keep}.seen())
	}
	if err != nil {
		return Log{}
	}
	return parse(data)
}

// Words returns a request of an agent to its model in words, "" for other lines.
func Words(e gateway.Entry) string {
	if e.Kind != gateway.Requested || e.Req == nil || e.Req.Free || e.Req.Model == "" {
		return ""
	}
	text := "request to " + e.Req.Model
	if e.Reason != "" {
		return text + ": " + e.Reason
	}
	if e.Usage != nil && e.Usage.Known() {
		all, _ := e.Usage.All()
		text += ", " + wording.Thousands(all) + " tokens"
	}
	if e.Req.Calls {
		text += ", the model calls a tool"
	}
	return text
}

// seen returns the path of the file with the newest line that Watch saw.
func (s Sidecar) seen() string { return s.Keep + ".seen" }

// feed sends a line to the gateway.
func (s Sidecar) feed(ctx context.Context, order any) error {
	line, _ := json.Marshal(order) // strings and numbers always encode
	return s.Engine.Feed(ctx, s.Name, append(line, '\n'))
}

func (s Sidecar) box() sandbox.Box {
	return sandbox.Box{
		Name: s.Name, Image: s.Image, User: user, Argv: []string{helper.Bin + "/" +
			helper.Gateway}, Stdin: true, Labels: s.Labels,
		Reach: sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: s.Inside, Aliases: []string{helper.GatewayAlias}},
			s.Way}, Resolve: true},
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

// abandon removes the container and adds its output to the error.
func (s Sidecar) abandon(ctx context.Context, err error) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), warmUp)
	defer cancel()
	if words, lerr := s.Engine.Logs(late, s.Name, 2<<10); lerr == nil && len(words) > 0 {
		err = fmt.Errorf("%w; its output: %s", err, words)
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

// order sends a command to the gateway. It does nothing if the gateway has ended.
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

// Log is the log of a gateway.
type Log struct {
	Entries []gateway.Entry
	Ended   bool // the newest line is the last one
}

// Sum returns the usage in the newest line, nil without lines.
func (l Log) Sum() *gateway.Sum {
	if len(l.Entries) == 0 {
		return nil
	}
	return l.Entries[len(l.Entries)-1].Sum
}

// ErrGone means that the container and its log are gone. Only the line that Watch saw is left.
var ErrGone = errors.New("another program removed the gateway")

// Close stops the gateway, stores its log in the record of the call and removes the container, in this
// order, so that a repetition after a crash returns the same log.
func (s Sidecar) Close(ctx context.Context) (Log, error) {
	// If the log is stored, the gateway was closed before.
	kept, err := readLog(s.Keep)
	if !errors.Is(err, hostfs.ErrAbsent) {
		return parse(kept), errors.Join(err, s.drop(ctx))
	}
	seen, err := readLog(s.seen())
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return Log{}, fmt.Errorf("cannot read the newest line of the gateway: %w", err)
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
	// After a power failure the engine's log may lack lines that Watch saw.
	if all := slices.Concat(data, []byte("\n"), seen); len(parse(all).Entries) > len(parse(data).Entries) {
		data = all
	}
	data = []byte(s.Safe.Whole(string(data))) // the output of a crash may contain anything
	if err := hostfs.Write(s.Keep, data, 0o644); err != nil {
		return Log{}, fmt.Errorf("cannot write the gateway's log: %w", err)
	}
	failpoint.Here("gateway.kept")
	return parse(data), s.drop(ctx)
}

// forget removes the container and the log of an earlier gateway with this name.
func (s Sidecar) forget(ctx context.Context) error {
	return errors.Join(removeFile(s.Keep), s.drop(ctx))
}

// drop removes the container and the newest line.
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

// parse reads the lines of a log. It skips other output, such as that of a crash.
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

// mostHosts is the number of refused hosts to name.
const mostHosts = 20

// Advice returns notes on the hosts that the gateway refused, and the setting that allows them. A role
// can request any text, so it only suggests hosts with a valid name.
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
			note += fmt.Sprintf(": %s; if you trust it, add {host: %q, private: true} to network.allow", e.Reason, host)
		case !strings.HasSuffix(e.Reason, gateway.NotAllowed):
			note += ": " + e.Reason
		case !config.Allowable(host):
			note += ": it is not the name of a host in a domain"
		default:
			open = append(open, host)
		}
		notes = append(notes, note)
	}
	if more := len(refused) - mostHosts; more > 0 {
		notes = append(notes, fmt.Sprintf("the gateway refused %d more hosts", more))
	}
	if len(open) > 0 {
		notes = append(notes, "to allow them, add to .abl/config.yaml: network: {allow: ["+strings.Join(open, ", ")+"]}")
	}
	return notes
}

// readLog reads a stored log. A damaged file counts as empty.
func readLog(path string) ([]byte, error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 2*maxLog)
	if errors.Is(err, hostfs.ErrNotRegular) || errors.Is(err, hostfs.ErrTooLarge) {
		return nil, nil
	}
	return data, err
}
