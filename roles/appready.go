package roles

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
)

// ErrService means that a service of the app did not come up: no contract is
// broken by that, the set-up is.
var ErrService = errors.New("cannot start the service")

// await follows the broker's events until the app is ready or has failed.
func (a *App) await(ctx context.Context, key string, up Up) (Up, error) {
	events := filepath.Join(a.dir(key), "events")
	begun := time.Now()
	for {
		st, err := a.Engine.Status(ctx, a.box()) // before its words are read: an ended box says no more
		if err != nil {
			return up, err
		}
		seen, err := readEvents(events)
		if err != nil {
			return up, err
		}
		if e, ok := decided(seen, a.Spec.App == nil); ok {
			if e.Event == "failed" && e.Name != "" && e.Name != helper.AppAlias {
				return up, fmt.Errorf("%w %q: %s", ErrService, e.Name, e.Detail)
			}
			return a.settled(key, up, e, begun), nil
		}
		if st.State == sandbox.Exited && len(seen) > 0 { // the broker spoke, so it was the app that ended it
			return a.settled(key, up, helper.Event{Event: "failed", Detail: fmt.Sprintf("its container ended with exit code %d", st.ExitCode)}, begun), nil
		}
		if time.Since(begun) > a.patience() {
			return a.settled(key, up, helper.Event{Event: "failed", Detail: "nothing came of its start: the app may have stopped what watches it"}, begun), nil
		}
		if st.State == sandbox.Exited {
			return up, fmt.Errorf("the app's container ended with exit code %d before it said a word%s", st.ExitCode, a.words(ctx))
		}
		select {
		case <-ctx.Done():
			return up, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// patience is how long the broker may stay silent: as long as it waits itself,
// and Silence beyond that. An app can stop the broker beside it, or spoil the
// file that it writes to, and must not keep abl waiting by that.
func (a *App) patience() time.Duration {
	wait := a.Silence
	if a.Spec.App != nil {
		wait += time.Duration(a.Spec.App.TimeoutMS) * time.Millisecond
	}
	for _, s := range a.Spec.Services {
		wait += time.Duration(s.TimeoutMS) * time.Millisecond
	}
	return wait
}

// words is the end of the app container's own log, which after the proof that it
// begins with only a fault of abl's fills.
func (a *App) words(ctx context.Context) string {
	data, err := a.Engine.Logs(ctx, a.box(), maxProof)
	if _, rest, ok := bytes.Cut(data, []byte("\n")); ok {
		data = rest[max(0, len(rest)-500):]
	}
	if text := strings.TrimSpace(string(data)); err == nil && text != "" {
		return ": " + text
	}
	return ""
}

func (a *App) settled(key string, up Up, e helper.Event, begun time.Time) Up {
	say := state.Event{Time: time.Now().UTC(), Kind: state.AppReady, Phase: a.Phase, Call: key, MS: time.Since(begun).Milliseconds()}
	if e.Event == "failed" {
		up.Failed = a.Safe.Line(e.Detail)
		say.Kind, say.Text = state.AppFailed, up.Failed
	}
	a.Out.Emit(say)
	return up
}

// decided finds the broker's first word on readiness; without an app section
// listening is all there is to wait for.
func decided(events []helper.Event, idle bool) (helper.Event, bool) {
	for _, e := range events {
		if e.Event == "ready" || e.Event == "failed" || idle && e.Event == "listening" {
			return e, true
		}
	}
	return helper.Event{}, false
}

// maxEvents is more than a broker writes, in bytes.
const maxEvents = 1 << 20

func readEvents(path string) ([]helper.Event, error) {
	f, err := OpenOutput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEvents))
	if err != nil {
		return nil, err
	}
	var seen []helper.Event
	for _, line := range bytes.Split(data, []byte("\n")) {
		var e helper.Event
		if json.Unmarshal(line, &e) == nil && e.Event != "" {
			seen = append(seen, e)
		}
	}
	return seen, nil
}
