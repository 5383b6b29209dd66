package environment

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
)

// Maker makes images on an engine, its progress shown through say.
func Maker(eng images.Engine, say func(string), caCert string, offline bool) *images.Maker {
	return &images.Maker{Engine: eng, Out: say, Env: os.Getenv, CACert: caCert, Offline: offline}
}

// keepOutput keeps what the failed step of an image's build printed with the project's logs.
func (e *Environment) keepOutput(image, output string) string {
	root, file := e.Project.Root, filepath.Join(e.Project.Logs(), "build-"+image+".log")
	err := hostfs.MkdirAll(root, e.Project.Rel(e.Project.Logs()))
	if err = cmp.Or(err, hostfs.Write(file, []byte(e.Safe.Whole(output)), 0o644)); err != nil {
		e.Note("cannot keep what the build printed: " + err.Error())
		return ""
	}
	return e.Project.Rel(file)
}

// Path is a setting's path in the project at root; "" and what is absolute stay.
func Path(root, rel string) string {
	if rel == "" || filepath.IsAbs(rel) {
		return rel
	}
	return filepath.Join(root, rel)
}

// Dockerfile is a setting's path to a Dockerfile whose folder may go to the engine:
// written are the directories that agents write.
func Dockerfile(root, rel string, written ...string) (string, error) {
	file := Path(root, rel)
	if file == "" {
		return "", nil
	}
	if err := images.CheckContext(root, file, written...); err != nil {
		return "", &Error{Usage, "give the Dockerfile, and the few files that it copies, a folder in .abl/images/: toolchains belong into the image, what the project itself needs is installed by a declared command (builder_commands)", err}
	}
	return file, nil
}

// pull takes the image of a service from its registry unless the engine has it.
func (e *Environment) pull(ctx context.Context, service, ref string) error {
	if _, there, err := e.Engine.ImageID(ctx, ref); err != nil || there {
		return err
	}
	if e.Offline {
		return fmt.Errorf("%w: %s of service %q, and abl is offline: run docker pull %s once with a network, or docker load -i FILE with an image that docker save wrote", sandbox.ErrNoImage, ref, service, ref)
	}
	e.NoteImage(fmt.Sprintf("service %s: pulling %s", service, ref))
	begun := time.Now()
	_, err := e.Engine.Pull(ctx, ref, func(line string) { e.Images.Tell(begun, "service "+service+": "+line) })
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: service %q: %w; try docker pull %s; without a registry docker load or app.services.%s.dockerfile (docs/services.md)", sandbox.ErrNoImage, service, err, ref, service)
	}
	return err
}
