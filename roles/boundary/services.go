package boundary

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

// ServiceContainer is a service of the app in a container on the app's network. The Builder's calls get
// separate containers of the same services.
type ServiceContainer struct {
	helper.Service
	Image string            `json:"-"`
	Env   []string          `json:"-"`
	Files map[string][]byte `json:"-"` // copied into it before its start, by path
}

// ErrService means that a service of the app did not start. This breaks no contract: the user has
// to change the set-up.
var ErrService = errors.New("cannot start the service")

// StartServices starts new containers of services. Each has its own holder, so that a database has
// no more network access than the app that uses it. Programs of a foreign image do not end at a deadline:
// they run in the process namespace of the holder and end with it.
func (s *Containers) StartServices(ctx context.Context, kind string, all []ServiceContainer, key string, until time.Time) error {
	for _, svc := range all {
		place := kind + svc.Name
		container := sandbox.ContainerConfig{
			Name:   s.Name(place),
			Image:  svc.Image,
			Env:    svc.Env,
			Loose:  true,
			Limits: s.Limits,
			Shm:    s.Spaces.Shm,
			Labels: s.Labels("service", "", key, until),
			Reach:  s.JoinPlace(place),
			Below:  true,
		}
		err := s.startHolder(ctx, place, until)
		if err == nil {
			err = s.Container(container).Make(ctx)
		}
		if err == nil {
			err = seed(ctx, s.Engine, container.Name, svc.Files)
		}
		if err == nil {
			err = s.Engine.Start(ctx, container.Name)
		}
		if err != nil {
			return fmt.Errorf("service %q: %w", svc.Name, err)
		}
	}
	return nil
}

// seed copies files into the container of a service before its start. Their folders must exist in
// the image: folders that abl creates would not have the owner that the image's programs need.
func seed(ctx context.Context, engine sandbox.Streams, name string, files map[string][]byte) error {
	for _, to := range slices.Sorted(maps.Keys(files)) {
		err := engine.CopyIn(ctx, name, path.Dir(to), func(out io.Writer) error {
			w := tar.NewWriter(out)
			err := w.WriteHeader(&tar.Header{Name: path.Base(to), Mode: 0o644, Size: int64(len(files[to])), ModTime: time.Now()})
			if err == nil {
				_, err = w.Write(files[to])
			}
			return errors.Join(err, w.Close())
		})
		if err != nil {
			return fmt.Errorf("cannot copy a file to %q: %w (the folder must exist in the image)", to, err)
		}
	}
	return nil
}

// RemoveServices removes services with their volumes.
func (s *Containers) RemoveServices(ctx context.Context, kind string, all []ServiceContainer) error {
	var errs []error
	for _, svc := range all {
		errs = append(errs, s.Engine.Remove(ctx, s.Name(kind+svc.Name)))
	}
	return errors.Join(errs...)
}

// LogTail returns the last lines of a container's log after its first lines, with a colon before
// them, or "".
func LogTail(ctx context.Context, engine sandbox.Streams, name string, first int) string {
	const most, last = 1 << 10, 3
	data, err := engine.Logs(ctx, name, most)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	text := strings.Join(lines[min(max(first, len(lines)-last), len(lines)):], "\n")
	if err != nil || text == "" {
		return ""
	}
	return ": " + text
}

// ServiceFailed returns the error of a service that did not respond, with the end of its log. The
// app may have invented the name.
func (s *Containers) ServiceFailed(ctx context.Context, kind string, all []ServiceContainer, name, detail string) error {
	if slices.ContainsFunc(all, func(svc ServiceContainer) bool { return svc.Name == name }) {
		if text := LogTail(ctx, s.Engine, s.Name(kind+name), 0); text != "" {
			detail += "; its log ends" + text
		}
	}
	return fmt.Errorf("%w %q: %s", ErrService, name, s.Safe.Line(detail))
}

// Trials starts new services for the Builder's call key, and waits until they respond. They end at
// until.
func (s *Containers) Trials(ctx context.Context, all []ServiceContainer, key string, until time.Time) error {
	if len(all) == 0 {
		return nil
	}
	uncancelled := context.WithoutCancel(ctx)
	if err := s.EndTrials(uncancelled, all); err != nil {
		return err
	}
	if err := s.StartServices(uncancelled, placeTrial, all, key, until); err != nil {
		return err
	}
	return s.awaitTrials(ctx, all, key)
}

// EndTrials removes the services of the Builder's calls.
func (s *Containers) EndTrials(ctx context.Context, all []ServiceContainer) error {
	return s.RemoveServices(ctx, placeTrial, all)
}

// awaitTrials waits until the services respond, in the network of the Builder.
func (s *Containers) awaitTrials(ctx context.Context, all []ServiceContainer, key string) error {
	spec, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	until := time.Now().Add(StartTime(all) + probeTime)
	container := s.Tool("await", s.Labels("helper", "", key, until), helper.Bin+"/"+helper.HelperProbe, "await", string(spec))
	container.Reach = s.JoinPlace(PlaceBuilder)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	uncancelled := context.WithoutCancel(ctx)
	c := s.Container(container)
	if err := c.Replace(uncancelled); err != nil {
		return err
	}
	err = c.Start(uncancelled)
	var line []byte
	if err == nil {
		line, err = s.Engine.Head(ctx, container.Name, maxProof)
	}
	if err = errors.Join(err, c.Remove(uncancelled)); err != nil {
		return fmt.Errorf("cannot wait for the services: %w", err)
	}
	var saw helper.Event
	switch err := json.Unmarshal(line, &saw); {
	case err != nil:
		return fmt.Errorf("cannot wait for the services: the probe printed %q", line)
	case saw.Event != "ready":
		return s.ServiceFailed(uncancelled, placeTrial, all, saw.Name, saw.Detail)
	}
	return nil
}

// StartTime returns how long services may take until they respond.
func StartTime(all []ServiceContainer) (most time.Duration) {
	for _, s := range all {
		most += time.Duration(s.TimeoutMS) * time.Millisecond
	}
	return most
}
