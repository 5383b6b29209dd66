package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/internal/config"
	"abl/internal/sandbox"
	"abl/roles"
)

const (
	askTime   = time.Minute // for a program to answer
	tidyTime  = 30 * time.Second
	maxWords  = 64 << 10 // bytes of an answer
	noTool    = 127      // exit code of a tool that is not there
	mostHosts = 16       // hosts that one word may stand for
)

// allowedHosts turns network.allow, which config has checked, into hosts, sorted. What
// a word stands for the tool of a role's image is asked. notes are for the person.
func allowedHosts(ctx context.Context, boxes *roles.Boxes, a Access, allow []string) (hosts, notes []string, err error) {
	for _, entry := range allow {
		if at, is := fixed[entry]; is {
			hosts = append(hosts, at...)
			continue
		}
		t, is := tools[entry]
		if !is {
			hosts = append(hosts, config.AllowedHost(entry))
			continue
		}
		words, err := askTool(ctx, boxes, a, entry, t)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot find out which host %q in network.allow stands for: %w", entry, err)
		}
		found, err := t.hosts(words)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot allow %q in network.allow: in image %s %w", entry, a.Image, err)
		}
		hosts = append(hosts, found...)
		if proxies, _, _ := strings.Cut(words, "\n"); entry == "go" && strings.Contains(proxies, "direct") {
			notes = append(notes, "GOPROXY ends in direct: a module that the proxy lacks comes from a host of its own, which has to be in network.allow, too")
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), notes, nil
}

// askTool runs a tool, where nothing that a role has written is asked.
func askTool(ctx context.Context, boxes *roles.Boxes, a Access, word string, t tool) (string, error) {
	code, words, err := ask(ctx, boxes.Engine, sandbox.Box{
		Name: roles.BoxName(boxes.ID, "ask-"+word), Image: a.Image, User: fmt.Sprintf("%d:%d", boxes.UID, boxes.GID), Dir: "/tmp",
		Labels: boxes.Labels("helper", a.Place, "", time.Now()),
		Argv:   []string{"sh", "-c", t.script}, Env: append([]string{"HOME=/tmp"}, t.env...),
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp", Size: 64 << 20, Owned: true}},
		Limits: sandbox.Limits{Memory: 512 << 20, CPUs: 1, Pids: 128, OpenFile: 1024, FileSize: 64 << 20},
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%s of image %s did not answer: %w", t.name, a.Image, err)
	case err != nil:
		return "", err
	case code == noTool:
		return "", fmt.Errorf("image %s has no %s: add it by toolchain or by %s, or name the host itself",
			a.Image, t.name, cmp.Or(a.Dockerfile, "images.builder.dockerfile"))
	case code != 0:
		return "", fmt.Errorf("%s of image %s ended with code %d: name the host itself", t.name, a.Image, code)
	}
	return words, nil
}

// ask runs a program in a box without a network and without anything of a project, and
// returns its exit code and what it says.
func ask(ctx context.Context, eng sandbox.Engine, box sandbox.Box) (code int, words string, err error) {
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
