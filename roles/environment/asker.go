package environment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"abl/internal/config"
	"abl/internal/sandbox"
	"abl/roles"
)

// toolHosts are those that words in network.allow stand for.
type toolHosts struct {
	Hosts []string // "host:port", sorted
	Notes []string // for the person
}

// asker asks the tools of an image.
type asker struct {
	*roles.Boxes
	Image string
	Role  string // whose image it is
}

const (
	askTime   = time.Minute // for a program to answer
	tidyTime  = 30 * time.Second
	maxWords  = 64 << 10 // bytes of an answer
	noTool    = 127      // exit code of a tool that is not there
	mostHosts = 16       // hosts that one word may stand for
)

// resolve turns network.allow, which config has checked, into hosts. It asks no
// tool that no word stands for.
func (a asker) resolve(ctx context.Context, allow []string) (toolHosts, error) {
	hosts := map[string]bool{}
	var e toolHosts
	for _, entry := range allow {
		t, is := tools[entry]
		if !is {
			hosts[config.AllowedHost(entry)] = true
			continue
		}
		words, err := a.ask(ctx, entry, t)
		if err != nil {
			return toolHosts{}, fmt.Errorf("cannot find out which host %q in network.allow stands for: %w", entry, err)
		}
		found, err := t.parse(words)
		if err != nil {
			return toolHosts{}, fmt.Errorf("cannot allow %q in network.allow: in image %s %w", entry, a.Image, err)
		}
		if len(found.Hosts) > mostHosts {
			return toolHosts{}, fmt.Errorf("cannot allow %q in network.allow: image %s names %d hosts: name those that you want", entry, a.Image, len(found.Hosts))
		}
		for _, host := range found.Hosts {
			hosts[host] = true
		}
		e.Notes = append(e.Notes, found.Notes...)
	}
	e.Hosts = slices.Sorted(maps.Keys(hosts))
	return e, nil
}

// ask runs a tool, where nothing that a role has written is asked.
func (a asker) ask(ctx context.Context, word string, t tool) (string, error) {
	code, words, err := Ask(ctx, a.Engine, sandbox.Box{
		Name: roles.BoxName(a.ID, "ask-"+word), Image: a.Image, User: fmt.Sprintf("%d:%d", a.UID, a.GID), Dir: "/tmp",
		Labels: a.Boxes.Labels("helper", a.Role, "", time.Now()),
		Argv:   []string{"sh", "-c", t.script}, Env: append([]string{"HOME=/tmp"}, t.env...),
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp", Size: 64 << 20, Owned: true}},
		Limits: sandbox.Limits{Memory: 512 << 20, CPUs: 1, Pids: 128, OpenFile: 1024, FileSize: 64 << 20},
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return "", fmt.Errorf("%s of image %s did not answer: %w", t.name, a.Image, err)
	}
	if err != nil {
		return "", err
	}
	switch code {
	case 0:
	case noTool:
		return "", fmt.Errorf("image %s has no %s: add it in images.builder.dockerfile, or name the host itself", a.Image, t.name)
	default:
		return "", fmt.Errorf("%s of image %s ended with code %d: name the host itself", t.name, a.Image, code)
	}
	return words, nil
}

// Ask runs a program in a box without a network and without anything of a project, and
// returns its exit code and what it says.
func Ask(ctx context.Context, eng sandbox.Engine, box sandbox.Box) (code int, words string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	remove := func() error {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		return eng.Remove(tidy, box.Name)
	}
	if err := remove(); err != nil { // what a killed abl left
		return 0, "", err
	}
	defer func() { err = errors.Join(err, remove()) }()
	box.Labels = maps.Clone(box.Labels)
	box.Labels[sandbox.LabelDeadline] = strconv.FormatInt(time.Now().Add(askTime).Unix(), 10)
	if err := roles.Make(ctx, eng, box); err != nil {
		return 0, "", err
	}
	if err := eng.Start(ctx, box.Name); err != nil {
		return 0, "", err
	}
	exit, err := eng.Wait(ctx, box.Name)
	if ctx.Err() != nil {
		return 0, "", context.Cause(ctx)
	}
	if err != nil {
		return 0, "", err
	}
	said, err := eng.Logs(ctx, box.Name, maxWords)
	return exit.Code, string(said), err
}
