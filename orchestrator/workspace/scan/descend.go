package scan

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// pending is a folder that another goroutine may be walking.
type pending struct {
	node *node
	err  error
	done chan struct{}
}

// descend walks a folder below, in a goroutine of its own when one is free.
func (w *walker) descend(ctx context.Context, fd int, e *name, f folder, subs map[int]*pending, at int) error {
	sub, err := unix.Openat(fd, e.plain(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		subs[at] = &pending{node: &node{same: len(f.known) == 0}}
		return w.unreadable(f.path, err)
	}
	p := &pending{done: make(chan struct{})}
	subs[at] = p
	walk := func() {
		defer unix.Close(sub)
		defer close(p.done)
		p.node, p.err = w.folder(ctx, sub, f)
	}
	select {
	case w.slots <- struct{}{}:
		go func() {
			defer func() { <-w.slots }()
			walk()
		}()
	default:
		walk()
		return p.err
	}
	return nil
}

// unreadable passes over what has gone meanwhile, lists what may not be read,
// and fails on anything else.
func (w *walker) unreadable(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil // gone, or something else by now
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		w.skip(path, "it may not be read")
		return nil
	}
	return fmt.Errorf("cannot read %q: %w", clip(path), err)
}

func waitAll(subs map[int]*pending) (err error) {
	for _, p := range subs {
		if p.done != nil {
			<-p.done
		}
		if p.err != nil {
			err = p.err
		}
	}
	return err
}
