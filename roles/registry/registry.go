// Package registry says which hosts a role's tools need for their packages. The
// words npm, pypi and go in network.allow stand for the hosts that the image's own
// tools name when they are asked.
package registry

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
)

// Egress is what a role may reach.
type Egress struct {
	Hosts []string // "host:port", sorted
	Notes []string // for the person
}

// Engine is what asking needs of a container engine.
type Engine interface {
	Create(context.Context, sandbox.Box) (string, error)
	Prove(context.Context, sandbox.Box) (sandbox.Proof, error)
	Start(ctx context.Context, name string) error
	Wait(ctx context.Context, name string) (sandbox.Exit, error)
	Remove(ctx context.Context, name string) error
	Logs(ctx context.Context, name string, max int64) ([]byte, error)
}

// Asker asks the tools of an image.
type Asker struct {
	Engine Engine
	Image  string
	User   string                   // "uid:gid", as the role's
	Name   func(tool string) string // of the box that asks
	Labels map[string]string
}

const (
	patience = time.Minute // for a tool to answer
	tidyTime = 30 * time.Second
	maxWords = 64 << 10 // bytes of an answer
	missing  = 127      // exit code of a tool that is not there
	most     = 16       // hosts that one word may stand for
)

// Resolve turns network.allow, which config has checked, into hosts. It asks no
// tool that no word stands for.
func (a Asker) Resolve(ctx context.Context, allow []string) (Egress, error) {
	hosts := map[string]bool{}
	var e Egress
	for _, entry := range allow {
		t, is := tools[entry]
		if !is {
			hosts[config.AllowedHost(entry)] = true
			continue
		}
		words, err := a.ask(ctx, entry, t)
		if err != nil {
			return Egress{}, fmt.Errorf("cannot find out which host %q in network.allow stands for: %w", entry, err)
		}
		found, err := t.parse(words)
		if err != nil {
			return Egress{}, fmt.Errorf("cannot allow %q in network.allow: in image %s %w", entry, a.Image, err)
		}
		if len(found.Hosts) > most {
			return Egress{}, fmt.Errorf("cannot allow %q in network.allow: image %s names %d hosts: name those that you want", entry, a.Image, len(found.Hosts))
		}
		for _, host := range found.Hosts {
			hosts[host] = true
		}
		e.Notes = append(e.Notes, found.Notes...)
	}
	e.Hosts = slices.Sorted(maps.Keys(hosts))
	return e, nil
}

// ask runs a tool in a box without a network and without anything of the project:
// what a role has written there is not asked.
func (a Asker) ask(ctx context.Context, word string, t tool) (_ string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := a.Name(word)
	remove := func() error {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		return a.Engine.Remove(tidy, name)
	}
	if err := remove(); err != nil { // what a killed abl left
		return "", err
	}
	defer func() { err = errors.Join(err, remove()) }()
	labels := maps.Clone(a.Labels)
	labels[sandbox.LabelDeadline] = strconv.FormatInt(time.Now().Add(patience).Unix(), 10)
	box := sandbox.Box{
		Name: name, Image: a.Image, User: a.User, Labels: labels, Dir: "/tmp",
		Argv: []string{"sh", "-c", t.script}, Env: append([]string{"HOME=/tmp"}, t.env...),
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp", Size: 64 << 20, Owned: true}},
		Limits: sandbox.Limits{Memory: 512 << 20, CPUs: 1, Pids: 128, OpenFile: 1024, FileSize: 64 << 20},
	}
	if _, err := a.Engine.Create(ctx, box); err != nil {
		return "", err
	}
	proof, err := a.Engine.Prove(ctx, box)
	if err == nil {
		err = proof.Err()
	}
	if err != nil {
		return "", err
	}
	if err := a.Engine.Start(ctx, name); err != nil {
		return "", err
	}
	exit, err := a.Engine.Wait(ctx, name)
	if ctx.Err() != nil {
		return "", fmt.Errorf("%s of image %s did not answer: %w", t.name, a.Image, context.Cause(ctx))
	}
	if err != nil {
		return "", err
	}
	switch exit.Code {
	case 0:
	case missing:
		return "", fmt.Errorf("image %s has no %s: add it in images.builder.dockerfile, or name the host itself", a.Image, t.name)
	default:
		return "", fmt.Errorf("%s of image %s ended with code %d: name the host itself", t.name, a.Image, exit.Code)
	}
	words, err := a.Engine.Logs(ctx, name, maxWords)
	return string(words), err
}
