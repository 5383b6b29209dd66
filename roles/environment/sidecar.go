package environment

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

// sidecar is the gateway of one call in its container. It stores the gateway's log with the call.
type sidecar struct {
	Engine sandbox.Engine
	Name   string // of the container
	Image  string
	Inside string // the role's network, in which its name is helper.GatewayAlias
	Way    sandbox.Endpoint
	Labels map[string]string
	Keep   string            // the file for the log
	Safe   *redact.Sanitizer // removes secrets from the log
}

// gatewayUser differs from the users of all roles and of the holder.
const gatewayUser = "10010:10010"

const (
	watchEvery = 2 * time.Second

	gatewayGrace = 5 * time.Second  // for the last requests to write their lines
	gatewayStart = 10 * time.Second // until it listens
	maxGateLog   = 32 << 20         // bytes of the log; the engine keeps less
	lookFor      = 10 * time.Millisecond
)

// Open creates the container and returns when the gateway listens. It first removes a container of
// the same name, which belongs to a call that never ran.
func (s sidecar) Open(ctx context.Context, setup gateway.Setup) error {
	setup.Listen = ":" + strconv.Itoa(helper.GatewayPort)
	if err := s.forget(ctx); err != nil {
		return err
	}
	c := sandbox.Container{Engine: s.Engine, ContainerConfig: s.container()}
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
func (s sidecar) Watch(ctx context.Context, look func(gateway.Entry)) {
	for last := int64(0); proc.Pause(ctx, watchEvery) == nil; {
		last, _ = s.see(ctx, last, look)
	}
}

// see calls look with each line after number last that has the usage. It stores the newest line and
// returns its number.
func (s sidecar) see(ctx context.Context, last int64, look func(gateway.Entry)) (int64, error) {
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

// storedGateLog returns the stored log of the closed gateway of a call, or the newest line that Watch saw of
// a running one. It is empty if there is neither. dir is the folder of the call's record.
func storedGateLog(dir string) gateLog {
	keep := gateLogPath(dir)
	data, err := readLog(keep)
	if errors.Is(err, hostfs.ErrAbsent) {
		data, err = readLog(sidecar{Keep: keep}.seen())
	}
	if err != nil {
		return gateLog{}
	}
	return parseGateLog(data)
}

// requestText returns a request of an agent to its model in words, "" for other lines.
func requestText(e gateway.Entry) string {
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
func (s sidecar) seen() string { return s.Keep + ".seen" }

// feed sends a line to the gateway.
func (s sidecar) feed(ctx context.Context, order any) error {
	line, _ := json.Marshal(order) // strings and numbers always encode
	return s.Engine.Feed(ctx, s.Name, append(line, '\n'))
}

func (s sidecar) container() sandbox.ContainerConfig {
	return sandbox.ContainerConfig{
		Name:   s.Name,
		Image:  s.Image,
		User:   gatewayUser,
		Argv:   []string{helper.Bin + "/" + helper.Gateway},
		Stdin:  true,
		Labels: s.Labels,
		Reach: sandbox.Reach{Endpoints: []sandbox.Endpoint{{Network: s.Inside, Aliases: []string{helper.GatewayAlias}},
			s.Way}, Resolve: true},
		Limits: sandbox.Limits{Memory: 256 << 20, CPUs: 2, Pids: 64, OpenFile: 4096, FileSize: 1 << 20},
	}
}

// listens waits for the ready line.
func (s sidecar) listens(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, gatewayStart)
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
func (s sidecar) abandon(ctx context.Context, err error) error {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), gatewayStart)
	defer cancel()
	if words, lerr := s.Engine.Logs(late, s.Name, 2<<10); lerr == nil && len(words) > 0 {
		err = fmt.Errorf("%w; its output: %s", err, words)
	}
	return errors.Join(err, s.Engine.Remove(late, s.Name))
}

// Bound gives the gateway new bounds for its call.
func (s sidecar) Bound(ctx context.Context, b gateway.Budget) error {
	return s.order(ctx, gateway.Command{Budget: &b})
}

// Renew gives the gateway a new key for its provider.
func (s sidecar) Renew(ctx context.Context, key gateway.Secret) error {
	return s.order(ctx, gateway.Command{Key: key})
}

// order sends a command to the gateway. It does nothing if the gateway has ended.
func (s sidecar) order(ctx context.Context, c gateway.Command) error {
	st, err := s.Engine.Status(ctx, s.Name)
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && st.State != sandbox.Running {
		return nil
	}
	if err != nil {
		return err
	}
	return s.feed(ctx, c)
}

// gateLog is the log of a gateway.
type gateLog struct {
	Entries []gateway.Entry
	Ended   bool // the newest line is the last one
}

// Sum returns the usage in the newest line, nil without lines.
func (l gateLog) Sum() *gateway.Sum {
	if len(l.Entries) == 0 {
		return nil
	}
	return l.Entries[len(l.Entries)-1].Sum
}

// errGatewayGone means that the container and its log are gone. Only the line that Watch saw is left.
var errGatewayGone = errors.New("another program removed the gateway")

// Close stops the gateway, stores its log in the record of the call and removes the container, in this
// order, so that a repetition after a crash returns the same log.
func (s sidecar) Close(ctx context.Context) (gateLog, error) {
	// If the log is stored, the gateway was closed before.
	kept, err := readLog(s.Keep)
	if !errors.Is(err, hostfs.ErrAbsent) {
		return parseGateLog(kept), errors.Join(err, s.drop(ctx))
	}
	seen, err := readLog(s.seen())
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return gateLog{}, fmt.Errorf("cannot read the newest line of the gateway's log: %w", err)
	}
	err = s.Engine.Stop(ctx, s.Name, gatewayGrace)
	if errors.Is(err, sandbox.ErrNotFound) {
		return parseGateLog(seen), errGatewayGone
	}
	if err != nil {
		return gateLog{}, err
	}
	data, err := s.Engine.Logs(ctx, s.Name, maxGateLog)
	if err != nil {
		return gateLog{}, err
	}
	// After a power failure the engine's log may lack lines that Watch saw.
	if all := slices.Concat(data, []byte("\n"), seen); len(parseGateLog(all).Entries) > len(parseGateLog(data).Entries) {
		data = all
	}
	data = []byte(s.Safe.Whole(string(data))) // the output of a crash may contain anything
	if err := hostfs.Write(s.Keep, data, 0o644); err != nil {
		return gateLog{}, fmt.Errorf("cannot write the gateway's log: %w", err)
	}
	failpoint.Here("gateway.kept")
	return parseGateLog(data), s.drop(ctx)
}

// forget removes the container and the log of an earlier gateway with this name.
func (s sidecar) forget(ctx context.Context) error {
	return errors.Join(removeFile(s.Keep), s.drop(ctx))
}

// drop removes the container and the newest line.
func (s sidecar) drop(ctx context.Context) error {
	return errors.Join(removeFile(s.seen()), s.Engine.Remove(ctx, s.Name))
}

func removeFile(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove an earlier log: %w", err)
	}
	return nil
}

func (s sidecar) log(ctx context.Context) (gateLog, error) {
	data, err := s.Engine.Logs(ctx, s.Name, maxGateLog)
	return parseGateLog(data), err
}

// parseGateLog reads the lines of a log. It skips other output, such as that of a crash.
func parseGateLog(data []byte) (l gateLog) {
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

// refusalNotes returns notes on the hosts that the gateway refused, and the setting that allows them. A role
// can request any text, so it only suggests hosts with a valid name.
func refusalNotes(log []gateway.Entry) (notes []string) {
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
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), 2*maxGateLog)
	if errors.Is(err, hostfs.ErrNotRegular) || errors.Is(err, hostfs.ErrTooLarge) {
		return nil, nil
	}
	return data, err
}
