package environment

import (
	"context"
	"errors"
	"os"
	"testing"

	"abl/internal/sandbox"
	"abl/roles/boundary"
)

// looking is an engine that can see the files of this machine, or cannot.
type looking struct {
	sandbox.Engine
	blind      bool
	err        error
	containers map[string]bool
}

func (e *looking) Create(_ context.Context, b sandbox.ContainerConfig) (string, error) {
	if e.err != nil {
		return "", e.err
	}
	if _, err := os.Stat(b.Mounts[0].Source); err != nil || e.blind {
		return "", errors.New("bind source path does not exist")
	}
	e.containers[b.Name] = true
	return "id", nil
}

func (e *looking) Remove(_ context.Context, name string) error {
	delete(e.containers, name)
	return nil
}

func TestSeesFiles(t *testing.T) {
	for name, c := range map[string]struct {
		engine looking
		want   error
	}{
		"it-sees-them":   {looking{}, nil},
		"it-does-not":    {looking{blind: true}, ErrElsewhere},
		"it-is-away":     {looking{err: sandbox.ErrUnreachable}, sandbox.ErrUnreachable},
		"the-image-went": {looking{err: sandbox.ErrNoImage}, sandbox.ErrNoImage},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.engine.containers = map[string]bool{}
			err := sees(t.Context(), &boundary.Containers{Engine: &c.engine}, dir)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || errors.Is(err, ErrElsewhere) != (c.want == ErrElsewhere) {
				t.Error(err)
			}
			left, rerr := os.ReadDir(dir)
			if rerr != nil || len(left) > 0 || len(c.engine.containers) > 0 {
				t.Errorf("got files %v, %v, containers %v, want no file and no container", left, rerr, c.engine.containers)
			}
		})
	}
}
