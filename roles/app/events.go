package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/boundary"
)

// await follows the broker's events until the app is ready or has failed.
func (a *App) await(ctx context.Context, key string, up Up) (Up, error) {
	events := filepath.Join(a.dir(key), "events")
	begun := time.Now()
	for {
		st, err := a.Engine.Status(ctx, a.container()) // before the events: an ended container writes no more
		if err != nil {
			return up, err
		}
		seen, err := readEvents(events)
		if err != nil {
			return up, err
		}
		e, ok := readiness(seen, a.Spec.App == nil)
		if !ok && st.State == sandbox.Exited {
			if a.Gone(ctx, a.HolderName(a.Place())) {
				return up, fmt.Errorf("%w: %s", sandbox.ErrKilled, a.HolderName(a.Place()))
			}
			why, err := EndedFromOutside(ctx, a.Containers, a.container(), a.dir(key), false)
			if err != nil {
				return up, err
			}
			if why != "" {
				return up, fmt.Errorf("%w: %s", sandbox.ErrKilled, why)
			}
		}
		switch {
		case ok && e.Event == "failed" && e.Name != "" && e.Name != helper.AppAlias:
			return up, a.ServiceFailed(ctx, boundary.PlaceService, a.Services, e.Name, e.Detail)
		case ok:
		case st.State == sandbox.Exited && len(seen) > 0: // the broker ran, so the app ended its container
			detail := fmt.Sprintf("its container ended with exit code %d", st.ExitCode)
			over, err := sizeReason(a.dir(key))
			if err != nil {
				return up, err
			}
			e = helper.Event{Event: "failed", Detail: cmp.Or(over, detail)}
		case time.Since(begun) > a.startTimeout():
			e = helper.Event{Event: "failed", Detail: "abl saw no result of its start: the app may have stopped abl's broker"}
		case st.State == sandbox.Exited:
			// After the proof, the container's log contains only errors of abl's own programs.
			return up, fmt.Errorf("the app's container ended with exit code %d before it reported anything%s", st.ExitCode,
				boundary.LogTail(ctx, a.Engine, a.container(), 1))
		default:
			if err := proc.Pause(ctx, 20*time.Millisecond); err != nil {
				return up, err
			}
			continue
		}
		return a.reportStart(key, up, e, begun), nil
	}
}

// startTimeout returns how long the broker may be silent: its own timeouts, and Silence in
// addition. An app can stop the broker in its container or damage the broker's file, and must not
// keep abl waiting by that.
func (a *App) startTimeout() time.Duration {
	wait := a.Silence
	if a.Spec.App != nil && !a.Spec.App.IsProgram() {
		wait += time.Duration(a.Spec.App.TimeoutMS) * time.Millisecond
	}
	return wait + boundary.StartTime(a.Services)
}

// reportStart emits how the start of an app ended, and returns up with a failure in it.
func (a *App) reportStart(key string, up Up, e helper.Event, begun time.Time) Up {
	event := state.Event{Kind: state.AppReady, MS: time.Since(begun).Milliseconds()}
	if e.Event == "failed" {
		up.Failed = a.Safe.Line(e.Detail)
		if up.Printed == "" {
			up.Printed = lastPrinted(a.Safe, a.dir(key), "app.log")
		}
		event.Kind, event.Text, event.Output = state.AppFailed, up.Failed, up.Printed
	}
	a.emit(key, event)
	return up
}

// emit emits an event of the call that a key belongs to.
func (a *App) emit(key string, e state.Event) {
	e.Time, e.Phase, e.Call = time.Now().UTC(), a.Phase, strings.Split(key, "/")[0]
	a.Out.Emit(e)
}

// readiness returns the broker's first event about readiness. Without an app section (idle) the
// app is ready if the broker listens.
func readiness(events []helper.Event, idle bool) (helper.Event, bool) {
	for _, e := range events {
		if e.Event == "ready" || e.Event == "failed" || idle && e.Event == "listening" {
			return e, true
		}
	}
	return helper.Event{}, false
}

// maxEvents is more than a broker writes to its file, in bytes.
const maxEvents = 1 << 20

// readEvents reads the broker's events so far.
func readEvents(path string) ([]helper.Event, error) {
	f, err := roles.OpenOutput(path)
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

// AppEnds lists how an app ended that should have kept running, one sentence each.
type AppEnds struct {
	Broke []string // ends without a request and with an exit code other than 0
	Other []string // other ends, for the user's information
}

// endFile contains, in the app's record, how its container ended.
const endFile = "ended.json"

// containerEnd is the content of that file.
type containerEnd struct {
	Exit int  `json:"exit"`
	OOM  bool `json:"oom,omitempty"`
}

// EndedBy returns what something other than abl ended while the app ran: its container, the
// holder of its network, or a service. It returns "" if nothing was. For asked see
// Containers.EndedFromOutside.
func (a *App) EndedBy(ctx context.Context, key string, asked bool) (why string, err error) {
	if a.Gone(ctx, a.HolderName(a.Place())) {
		return a.HolderName(a.Place()) + " ended, which holds the app's network", nil // also if the engine was stopped
	}
	for _, svc := range a.Services {
		if name := a.Name(boundary.PlaceService + svc.Name); a.Gone(ctx, name) {
			return "the app's service " + name + " ended", nil
		}
	}
	return EndedFromOutside(ctx, a.Containers, a.container(), a.dir(key), asked)
}

// EndedFromOutside is Containers.EndedFromOutside for an app whose record is in dir. abl may have ended
// the app because of its output or of a full disk.
func EndedFromOutside(ctx context.Context, s *boundary.Containers, name, dir string, asked bool) (why string, err error) {
	if why, full, err := roles.Read[string](roles.Record{Dir: dir}, fullFile); err != nil || full {
		return why, err
	}
	if over, err := sizeReason(dir); err != nil || over != "" {
		return "", err
	}
	return s.EndedFromOutside(ctx, name, asked)
}

// NoteEnd records how the app's container ended, unless something else ended it.
func (a *App) NoteEnd(ctx context.Context, key string) error {
	st, err := a.Engine.Status(ctx, a.container())
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && (st.State != sandbox.Exited || st.Labels[sandbox.LabelCall] != key) {
		return nil
	}
	if err != nil {
		return err
	}
	if why, err := a.EndedBy(ctx, key, false); err != nil || why != "" {
		return err
	}
	return roles.Record{Dir: a.dir(key)}.Write(endFile, containerEnd{st.ExitCode, st.OOMKilled})
}

// commandName matches the name of a background command. The app may have written other text there.
var commandName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// EndsOf reads, from the record of a call or of a replay, how its app ended while it should have
// kept running. Without an app the result is empty.
func EndsOf(p state.Project, key string) (ends AppEnds, err error) {
	dir := filepath.Join(p.Call(key), "app")
	file, err := os.Lstat(filepath.Join(dir, "events"))
	if errors.Is(err, fs.ErrNotExist) {
		return ends, nil
	}
	if err != nil {
		return ends, err
	}
	seen, err := readEvents(filepath.Join(dir, "events"))
	if err != nil {
		return ends, err
	}
	up := false
	for _, e := range seen {
		if up {
			ends.add(e)
		}
		up = up || e.Event == "ready" || e.Event == "listening"
	}
	if !up || file.Size() > maxEvents {
		ends.Broke = append(ends.Broke, "abl's record of it was deleted or flooded from inside its container")
	}
	container, ended, err := roles.Read[containerEnd](roles.Record{Dir: dir}, endFile)
	if err != nil || !ended {
		return ends, err
	}
	text := fmt.Sprintf("its container ended on its own with exit code %d", container.Exit)
	over, err := sizeReason(dir)
	if err != nil {
		return ends, err
	}
	text = cmp.Or(over, text)
	if container.OOM {
		text += ", out of memory (limits.memory)"
	}
	ends.record(text, container.Exit)
	return ends, nil
}

// sizeReason returns why abl ended an app's container for its size, "" if it did not.
func sizeReason(dir string) (string, error) {
	over, ended, err := roles.Read[string](roles.Record{Dir: dir}, overFile)
	if !ended {
		return "", err
	}
	return "abl ended its container: " + over, err
}

// add adds an event after the start.
func (ends *AppEnds) add(e helper.Event) {
	who := "the app"
	if e.Name != helper.AppAlias && commandName.MatchString(e.Name) {
		who = "what abl-cmd " + e.Name + " started"
	}
	switch {
	case e.Exit == nil:
	case e.Event == "exited" && e.Asked:
		ends.Other = append(ends.Other, fmt.Sprintf("a declared command ended %s with exit code %d", who, *e.Exit))
	case e.Event == "exited":
		ran := time.Duration(e.MS) * time.Millisecond
		ends.record(fmt.Sprintf("%s ended on its own with exit code %d, %.1fs after its start", who, *e.Exit, ran.Seconds()),
			*e.Exit)
	case e.Event == "failed":
		ends.record(fmt.Sprintf("%s was restarted and ended on its own with exit code %d", who, *e.Exit), *e.Exit)
	}
}

func (ends *AppEnds) record(text string, exit int) {
	if exit == 0 {
		ends.Other = append(ends.Other, text)
		return
	}
	ends.Broke = append(ends.Broke, text)
}

// overFile contains, in the app's record, what it wrote too much of, if abl ended it for that.
const overFile = "over.json"

// fullFile contains, in the app's record, which disk was too full, if abl ended the app for that.
const fullFile = "full.json"
