package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles"
)

// ErrElsewhere means that an engine does not see the project's files.
var ErrElsewhere = errors.New("the engine does not see the project's files where abl sees them")

// maker is what it takes to have an engine look for a file.
type maker interface {
	Create(context.Context, sandbox.Box) (string, error)
	Remove(ctx context.Context, name string) error
}

// sees makes sure of an engine that may have other files than abl that it sees a
// directory.
func sees(ctx context.Context, eng maker, info sandbox.Info, id, image, dir string) error {
	if info.Local && !contained() {
		return nil
	}
	return seesFiles(ctx, eng, id, image, dir)
}

// contained is whether abl itself runs in a container, by the marks that engines
// leave there.
func contained() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Lstat(mark); err == nil {
			return true
		}
	}
	return false
}

// seesFiles proves that an engine sees a directory under the path at which abl
// sees it: it is asked for a box that mounts a file there whose name nobody can
// have guessed. An engine refuses that for a file that it does not find. abl in a
// container that was handed the engine's socket needs this, or one beside a remote
// engine that shares its files.
func seesFiles(ctx context.Context, eng maker, id, image, dir string) error {
	name := filepath.Join(dir, "nonce.tmp-"+rand.Text())
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		return fmt.Errorf("cannot try whether the engine sees the project: %w", err)
	}
	defer os.Remove(name)
	box := sandbox.Box{
		Name: roles.BoxName(id, "sees"), Image: image, User: "10009:10009", Argv: []string{"none"},
		Labels: map[string]string{
			sandbox.LabelProject: id, sandbox.LabelKind: "helper",
			sandbox.LabelDeadline: strconv.FormatInt(time.Now().Add(time.Minute).Unix(), 10),
		},
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256}, // should somebody start it
		Mounts: []sandbox.Mount{{What: sandbox.CallIn, Source: name, Target: helper.In, ReadOnly: true}},
	}
	if err := eng.Remove(ctx, box.Name); err != nil {
		return err
	}
	_, err := eng.Create(ctx, box)
	switch {
	case err == nil:
		return eng.Remove(context.WithoutCancel(ctx), box.Name)
	case errors.Is(err, sandbox.ErrUnreachable), errors.Is(err, sandbox.ErrNoImage), ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %q (%w)", ErrElsewhere, dir, err)
}
