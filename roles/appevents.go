package roles

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
)

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
		e, ok := decided(seen, a.Spec.App == nil)
		if !ok && st.State == sandbox.Exited {
			if gone(ctx, a.Engine, a.holder(a.at())) {
				return up, fmt.Errorf("%w: %s", ErrKilled, a.holder(a.at()))
			}
			if why, err := a.appFromOutside(ctx, a.box(), a.dir(key), false); err != nil || why != "" {
				return up, cmp.Or(err, fmt.Errorf("%w: %s", ErrKilled, why))
			}
		}
		switch {
		case ok && e.Event == "failed" && e.Name != "" && e.Name != helper.AppAlias:
			return up, a.serviceFailed(ctx, placeService, a.Services, e.Name, e.Detail)
		case ok:
		case st.State == sandbox.Exited && len(seen) > 0: // the broker spoke, so it was the app that ended it
			detail := fmt.Sprintf("its container ended with exit code %d", st.ExitCode)
			over, err := overgrown(a.dir(key))
			if err != nil {
				return up, err
			}
			e = helper.Event{Event: "failed", Detail: cmp.Or(over, detail)}
		case time.Since(begun) > a.patience():
			e = helper.Event{Event: "failed", Detail: "nothing came of its start: the app may have stopped what watches it"}
		case st.State == sandbox.Exited:
			return up, fmt.Errorf("the app's container ended with exit code %d before it said a word%s", st.ExitCode, a.words(ctx, a.box(), 1)) // after the proof only a fault of abl's fills its log
		default:
			if err := proc.Pause(ctx, 20*time.Millisecond); err != nil {
				return up, err
			}
			continue
		}
		return a.settled(key, up, e, begun), nil
	}
}

// patience is how long the broker may stay silent: as long as it waits itself,
// and Silence beyond that. An app can stop the broker beside it, or spoil the
// file that it writes to, and must not keep abl waiting by that.
func (a *App) patience() time.Duration {
	wait := a.Silence
	if a.Spec.App != nil && !a.Spec.App.IsProgram() {
		wait += time.Duration(a.Spec.App.TimeoutMS) * time.Millisecond
	}
	return wait + StartTime(a.Services)
}

func (a *App) settled(key string, up Up, e helper.Event, begun time.Time) Up {
	say := state.Event{Kind: state.AppReady, MS: time.Since(begun).Milliseconds()}
	if e.Event == "failed" {
		up.Failed = a.Safe.Line(e.Detail)
		if up.Printed == "" {
			up.Printed = a.lastPrinted(a.dir(key), "app.log")
		}
		say.Kind, say.Text, say.Output = state.AppFailed, up.Failed, up.Printed
	}
	a.tell(key, say)
	return up
}

// tell emits an event of the call that a key belongs to.
func (a *App) tell(key string, e state.Event) {
	e.Time, e.Phase, e.Call = time.Now().UTC(), a.Phase, strings.Split(key, "/")[0]
	a.Out.Emit(e)
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

// AppEnds is how an app ended that was to go on, each end in a sentence.
type AppEnds struct {
	Broke []string // nobody had asked for it, and its code is not 0
	Other []string // for the person to know
}

// endFile keeps how the app's container ended, in the app's record.
const endFile = "ended.json"

// containerEnd is the content of that file.
type containerEnd struct {
	Exit int  `json:"exit"`
	OOM  bool `json:"oom,omitempty"`
}

// lost reports what of a running app was ended from outside, "" for nothing: its container, the
// holder of its network, or a service. Without a holder all ended with the engine. For asked see
// fromOutside.
func (a *App) lost(ctx context.Context, key string, asked bool) (why string, err error) {
	if gone(ctx, a.Engine, a.holder(a.at())) {
		return a.holder(a.at()) + " ended, which holds the app's network", nil
	}
	for _, svc := range a.Services {
		if name := a.name(placeService + svc.Name); gone(ctx, a.Engine, name) {
			return name + " ended, a service of the app's", nil
		}
	}
	return a.appFromOutside(ctx, a.box(), a.dir(key), asked)
}

// appFromOutside is fromOutside for an app, whose record is in dir: abl may have ended it itself,
// for what it wrote, or since a disk had too little room.
func (s *Boxes) appFromOutside(ctx context.Context, name, dir string, asked bool) (why string, err error) {
	if why, full, err := Read[string](Record{dir}, fullFile); err != nil || full {
		return why, err
	}
	if over, err := overgrown(dir); err != nil || over != "" {
		return "", err
	}
	return s.endedFromOutside(ctx, name, asked)
}

// noteEnd keeps how the app's container ended before it is removed, if it ended by itself.
func (a *App) noteEnd(ctx context.Context, key string) error {
	st, err := a.Engine.Status(ctx, a.box())
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && (st.State != sandbox.Exited || st.Labels[sandbox.LabelCall] != key) {
		return nil
	}
	if err != nil {
		return err
	}
	if why, err := a.lost(ctx, key, false); err != nil || why != "" {
		return err
	}
	return Record{a.dir(key)}.Write(endFile, containerEnd{st.ExitCode, st.OOMKilled})
}

// commandName is what a background command can be called; the app may have written
// something else there.
var commandName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)

// EndsOf reads from the record of a call, or of a replay, how its app ended while it
// was to go on. Without an app there is nothing to read.
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
		ends.Broke = append(ends.Broke, "what abl had noted of it was wiped out or flooded from inside its container")
	}
	box, ended, err := Read[containerEnd](Record{dir}, endFile)
	if err != nil || !ended {
		return ends, err
	}
	text := fmt.Sprintf("its container ended by itself with exit code %d", box.Exit)
	over, err := overgrown(dir)
	if err != nil {
		return ends, err
	}
	text = cmp.Or(over, text)
	if box.OOM {
		text += ", out of memory (limits.memory)"
	}
	ends.tell(text, box.Exit)
	return ends, nil
}

// overgrown returns that abl ended an app's container and why, "" if it did not.
func overgrown(dir string) (string, error) {
	over, ended, err := Read[string](Record{dir}, overFile)
	if !ended {
		return "", err
	}
	return "abl ended its container: " + over, err
}

// add takes an event from after the start.
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
		ends.tell(fmt.Sprintf("%s ended by itself with exit code %d, %.1fs after its start", who, *e.Exit, ran.Seconds()), *e.Exit)
	case e.Event == "failed":
		ends.tell(fmt.Sprintf("%s was started once more and ended by itself with exit code %d", who, *e.Exit), *e.Exit)
	}
}

func (ends *AppEnds) tell(text string, exit int) {
	if exit == 0 {
		ends.Other = append(ends.Other, text)
		return
	}
	ends.Broke = append(ends.Broke, text)
}
