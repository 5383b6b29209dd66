package environment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
)

// Maker returns a builder of images on an engine. say receives its progress.
func Maker(eng images.Engine, say func(string), caCert string, offline bool) *images.Maker {
	return &images.Maker{Engine: eng, Out: say, Env: os.Getenv, CACert: caCert, Offline: offline}
}

// noteUse records which images the project uses, for abl images prune. Without a writable home, as in
// some CI jobs, there is no record.
func (e *Environment) noteUse(refs []string) {
	if dir, err := state.UserDir(); err == nil {
		_ = images.NoteUse(dir, e.Project.Root, refs, time.Now()) // prune deletes more then
	}
}

// keepOutput keeps what the failed step of an image's build printed with the project's logs.
func (e *Environment) keepOutput(image, output string) string {
	root, file := e.Project.Root, filepath.Join(e.Project.Logs(), "build-"+image+".log")
	err := hostfs.MkdirAll(root, e.Project.Rel(e.Project.Logs()))
	if err == nil {
		err = hostfs.Write(file, []byte(e.Safe.Whole(output)), 0o644)
	}
	if err != nil {
		e.Note("cannot write the output of the build: " + err.Error())
		return ""
	}
	return e.Project.Rel(file)
}

// Path returns a setting's path below root. "" and absolute paths stay unchanged.
func Path(root, rel string) string {
	if rel == "" || filepath.IsAbs(rel) {
		return rel
	}
	return filepath.Join(root, rel)
}

// Dockerfile returns the path of a setting's Dockerfile. It fails if the Dockerfile's folder
// contains files that must not go to the engine, such as the directories that agents write.
func Dockerfile(root, rel string, written ...string) (string, error) {
	file := Path(root, rel)
	if file == "" {
		return "", nil
	}
	if err := images.CheckContext(root, file, written...); err != nil {
		do := "put the Dockerfile, and the few files that it copies, into a folder in .abl/images/: " +
			"install toolchains in the image, and the project's dependencies by declared commands (builder_commands)"
		return "", &Error{Usage, do, err}
	}
	return file, nil
}

// pull pulls the image of a service unless the engine has it.
func (e *Environment) pull(ctx context.Context, service, ref string) error {
	if _, there, err := e.Engine.ImageID(ctx, ref); err != nil || there {
		return err
	}
	if e.Offline {
		return fmt.Errorf("%w: %s of service %q, and abl is offline: run docker pull %s once with a network, "+
			"or docker load -i FILE with an image written by docker save", sandbox.ErrNoImage, ref, service, ref)
	}
	e.NoteImage(fmt.Sprintf("service %s: pulling %s", service, ref))
	begun := time.Now()
	_, err := e.Engine.Pull(ctx, ref, func(line string) { e.Images.Report(begun, "service "+service+": "+line) })
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w: service %q: %w; try docker pull %s; without a registry docker load or "+
			"app.services.%s.dockerfile (docs/services.md)", sandbox.ErrNoImage, service, err, ref, service)
	}
	return err
}
