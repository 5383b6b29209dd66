package setup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/scaffold"
	"abl/internal/config"
	"abl/internal/detect"
	"abl/internal/hostfs"
	"abl/internal/yamlfile"
)

// maxSettings is the largest config.yaml that abl reads, in bytes.
const maxSettings = 1 << 20

// changedKind plans the change of app.kind in an existing config.yaml. It returns nothing if there is no
// config.yaml or if it already has that kind.
func changedKind(ctx context.Context, in *cli.Input, dir string, p *scaffold.Plan) ([]scaffold.Op, error) {
	if _, err := os.Lstat(filepath.Join(dir, config.File)); err != nil {
		return nil, nil
	}
	s, err := project.OpenAt(in, dir)
	if err != nil || s.Conf.File == "" {
		return nil, err
	}
	app := s.Conf.App
	switch {
	case app != nil && (p.Kind == "" || p.Kind == app.Kind):
		p.Kind = app.Kind
		return nil, nil
	case p.Kind == "":
		return nil, nil
	case app == nil:
		return nil, cli.WithHint("add app.kind, app.command and app.port to that file (docs/config.md)",
			"cannot change app.kind to %s: %s has no app section", p.Kind, s.Conf.File)
	}
	found := detect.Report{}
	t, err := sourceTree(dir, p)
	if err != nil {
		return nil, err
	}
	if t != nil {
		found = detect.Read(ctx, t, p.Dir, detect.Wish{Kind: p.Kind})
	}
	data, err := hostfs.Read(dir, s.Conf.File, maxSettings)
	if err != nil {
		return nil, err
	}
	if data, err = withKind(s.Conf.File, data, p.Kind, app.Command, found); err != nil {
		return nil, err
	}
	if err := accepted(s.Conf.File, data); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot change app.kind to %s: %w", p.Kind, err),
			"change the settings by hand")
	}
	if p.Kind == "command" && found.Get("app.command") == "" {
		in.Say("note: app.command is still %q; a run appends its arguments to it", app.Command)
	}
	return []scaffold.Op{{Kind: scaffold.Change, Path: s.Conf.File, Data: data}}, nil
}

// withKind changes app.kind in the text of settings, and the keys that the kind needs or forbids.
func withKind(file string, data []byte, kind, was string, found detect.Report) ([]byte, error) {
	e := yamlfile.NewEdit(file, data)
	e.Set("app.kind", kind)
	command := found.Get("app.command")
	switch {
	case kind == "command":
		e.Comment("app.port")
		e.Comment("app.ready")
	case !e.Has("app.port") && found.Get("app.port") == "":
		return nil, cli.WithHint("set app.port in "+file,
			"cannot change app.kind to %s: no file shows the port of the app", kind)
	case !e.Has("app.port"):
		e.Set("app.port", found.Get("app.port"))
	}
	if kind == "tcp" && e.Has("app.ready.path") {
		e.Comment("app.ready")
	}
	if command != "" && command != was {
		e.Set("app.command", strconv.Quote(command))
		if build := found.Get("app.build"); build != "" {
			e.Set("app.build", strconv.Quote(build))
		}
	}
	data, err := e.Bytes()
	if err != nil {
		return nil, exit.With(exit.Usage, err, "change app.kind there by hand")
	}
	return data, nil
}

// accepted returns an error if abl refuses the settings.
func accepted(file string, data []byte) error {
	dir, err := os.MkdirTemp("", "abl-settings-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
		return err
	}
	if err := hostfs.Write(filepath.Join(dir, file), data, 0o600); err != nil {
		return err
	}
	_, err = config.Load(dir, func(string) (string, bool) { return "", false }, nil)
	return err
}
