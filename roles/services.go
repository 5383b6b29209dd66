package roles

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// ServiceBox is a further container on the app's network, and on one beside the Builder.
type ServiceBox struct {
	helper.Service
	Image string            `json:"-"`
	Env   []string          `json:"-"`
	Files map[string][]byte `json:"-"` // put into it before its start, by path
}

// ErrService means that a service of the app did not come up: no contract is
// broken by that, the set-up is.
var ErrService = errors.New("cannot start the service")

// services are those of the app, which its broker waits for.
func (a *App) services(ctx context.Context, key string, until time.Time) error {
	return a.startServices(ctx, placeService, a.Services, key, until)
}

// startServices starts the further containers at places of a kind, fresh. Each has a
// holder, for what an app can make a database do shall have no more reach than the app. A
// foreign image knows no deadline: its programs live below the holder's and end with it.
func (s *Boxes) startServices(ctx context.Context, kind string, all []ServiceBox, key string, until time.Time) error {
	for _, svc := range all {
		place := kind + svc.Name
		box := sandbox.Box{
			Name: s.name(place), Image: svc.Image, Env: svc.Env, Loose: true, Limits: s.Limits, Shm: s.Spaces.Shm, Labels: s.Labels("service", "", key, until),
			Reach: s.joined(place), Below: true,
		}
		err := s.startHolder(ctx, place, until)
		if err == nil {
			err = Make(ctx, s.Engine, box)
		}
		if err == nil {
			err = s.seed(ctx, box.Name, svc.Files)
		}
		if err == nil {
			err = s.Engine.Start(ctx, box.Name)
		}
		if err != nil {
			return fmt.Errorf("service %q: %w", svc.Name, err)
		}
	}
	return nil
}

// seed puts files into a service that was made. The folder of each is the image's: one that
// was made here would have another owner than the image's programs want.
func (s *Boxes) seed(ctx context.Context, name string, files map[string][]byte) error {
	for _, to := range slices.Sorted(maps.Keys(files)) {
		err := s.Engine.CopyIn(ctx, name, path.Dir(to), func(out io.Writer) error {
			w := tar.NewWriter(out)
			err := w.WriteHeader(&tar.Header{Name: path.Base(to), Mode: 0o644, Size: int64(len(files[to])), ModTime: time.Now()})
			if err == nil {
				_, err = w.Write(files[to])
			}
			return errors.Join(err, w.Close())
		})
		if err != nil {
			return fmt.Errorf("cannot put a file at %q, whose folder its image has to have: %w", to, err)
		}
	}
	return nil
}

// removeServices removes those of a kind of place, with what they keep.
func (s *Boxes) removeServices(ctx context.Context, kind string, all []ServiceBox) error {
	var errs []error
	for _, svc := range all {
		errs = append(errs, s.Engine.Remove(ctx, s.name(kind+svc.Name)))
	}
	return errors.Join(errs...)
}

// words are the last lines that a box printed but for its first ones, with what goes before them.
func (s *Boxes) words(ctx context.Context, name string, first int) string {
	const most, last = 1 << 10, 3
	data, err := s.Engine.Logs(ctx, name, most)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	text := strings.Join(lines[min(max(first, len(lines)-last), len(lines)):], "\n")
	if err != nil || text == "" {
		return ""
	}
	return ": " + text
}

// serviceFailed is the error of a service that did not answer, with its own last words. An app
// can have made up the name.
func (s *Boxes) serviceFailed(ctx context.Context, kind string, all []ServiceBox, name, detail string) error {
	if slices.ContainsFunc(all, func(svc ServiceBox) bool { return svc.Name == name }) {
		if words := s.words(ctx, s.name(kind+name), 0); words != "" {
			detail += "; its log ends" + words
		}
	}
	return fmt.Errorf("%w %q: %s", ErrService, name, s.Safe.Line(detail))
}

// Trials starts services like the app's beside the Builder's calls, fresh for the call key,
// and waits until they answer. They end with until.
func (s *Boxes) Trials(ctx context.Context, all []ServiceBox, key string, until time.Time) error {
	if len(all) == 0 {
		return nil
	}
	whole := context.WithoutCancel(ctx)
	err := s.EndTrials(whole, all)
	if err == nil {
		err = s.startServices(whole, placeTrial, all, key, until)
	}
	if err == nil {
		err = s.awaitTrials(ctx, all, key)
	}
	return err
}

// EndTrials removes the services beside the Builder's calls.
func (s *Boxes) EndTrials(ctx context.Context, all []ServiceBox) error {
	return s.removeServices(ctx, placeTrial, all)
}

// awaitTrials asks from where the Builder will: by name, and in no other network.
func (s *Boxes) awaitTrials(ctx context.Context, all []ServiceBox, key string) error {
	spec, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	until := time.Now().Add(StartTime(all) + probeTime)
	box := s.Tool("await", s.Labels("helper", "", key, until), helper.Bin+"/"+helper.HelperProbe, "await", string(spec))
	box.Reach = s.joined(PlaceBuilder)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	whole := context.WithoutCancel(ctx)
	if err := errors.Join(s.Engine.Remove(whole, box.Name), Make(whole, s.Engine, box)); err != nil {
		return err
	}
	err = s.Engine.Start(whole, box.Name)
	var line []byte
	if err == nil {
		line, err = s.Engine.Head(ctx, box.Name, maxProof)
	}
	if err = errors.Join(err, s.Engine.Remove(whole, box.Name)); err != nil {
		return fmt.Errorf("cannot wait for the services: %w", err)
	}
	var saw helper.Event
	switch err := json.Unmarshal(line, &saw); {
	case err != nil:
		return fmt.Errorf("cannot wait for the services: it said %q", line)
	case saw.Event != "ready":
		return s.serviceFailed(whole, placeTrial, all, saw.Name, saw.Detail)
	}
	return nil
}

// StartTime is how long services may take until they answer.
func StartTime(all []ServiceBox) (most time.Duration) {
	for _, s := range all {
		most += time.Duration(s.TimeoutMS) * time.Millisecond
	}
	return most
}
