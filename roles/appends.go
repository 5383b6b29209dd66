package roles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/state"
)

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

// noteEnd keeps how the app's container ended before it is removed, if it did. One
// that ended together with its network's holder ended with the engine.
func (a *App) noteEnd(ctx context.Context, key string) error {
	st, err := a.Engine.Status(ctx, a.box())
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && (st.State != sandbox.Exited || st.Labels[sandbox.LabelCall] != key) {
		return nil
	}
	if err != nil {
		return err
	}
	holder, err := a.Engine.Status(ctx, a.holder(PlaceApp))
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && holder.State != sandbox.Running {
		return nil
	}
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(a.dir(key), endFile), containerEnd{st.ExitCode, st.OOMKilled})
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
	var box containerEnd
	if ended, err := readJSON(filepath.Join(dir, endFile), &box); err != nil || !ended {
		return ends, err
	}
	text := fmt.Sprintf("its container ended by itself with exit code %d", box.Exit)
	if box.OOM {
		text += ", out of memory (limits.memory)"
	}
	ends.tell(text, box.Exit)
	return ends, nil
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
