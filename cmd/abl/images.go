package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/images"
	"abl/internal/state"
	"abl/internal/toolchain"
	"abl/internal/wording"
	"abl/roles/environment"
)

func imagesCommand() cli.Command {
	return cli.Command{
		Name:  "images",
		Group: cli.Maintenance,
		Usage: "build, list, update or delete abl's images",
		Subs: []cli.Command{
			{
				Name:   "build",
				Args:   "[AGENT...]",
				Values: images.Agents(),
				Flags:  cli.ImageFlags(),
				Run:    onEngine(buildImages),
				Usage:  "build missing images (default: gemini, tools)",
			},
			{
				Name:  "save",
				Args:  "FILE [AGENT...]",
				Run:   saveImages,
				Usage: "write images to a file, for a machine without a network (default: all)",
			},
			{
				Name:  "load",
				Args:  "[FILE]",
				Usage: "read images from a file of abl images save (default: $ABL_IMAGES)",
				Run:   loadImages,
			},
			{
				Name:  "list",
				Usage: "list abl's images",
				Run:   listImages,
				Flags: []cli.Flag{cli.JSONFlag()},
			},
			{
				Name:   "update",
				Args:   "AGENT [VERSION]",
				Values: images.Programs(),
				Flags:  cli.ImageFlags(),
				Run:    updateImage,
				Usage:  "build an agent's newest version and test it on the demo with a mock model server",
			},
			{
				Name:  "prune",
				Run:   onEngine(pruneImages),
				Usage: "delete images of other abl versions that no project on this machine used for 30 days",
			},
			{
				Name:   "remove",
				Args:   "[NAME...]",
				Run:    onEngine(removeImages),
				Values: slices.Concat(images.Agents(), toolchain.Names(), []string{"image", "npm"}),
				Usage:  "remove images from the engine (default: all)",
			},
		},
	}
}

// onEngine returns a command that acts on the images of the engine. It prints progress on stderr, and the
// result lines even if the command fails.
func onEngine(
	do func(context.Context, *cli.Input, *images.Maker) (lines []string, err error),
) func(context.Context, *cli.Input) error {
	return func(ctx context.Context, in *cli.Input) error {
		eng, _, err := environment.Connect(ctx)
		if err != nil {
			return exit.OnEngine(err)
		}
		defer eng.Close()
		v := openView(ctx, in)
		say := func(line string) { v.Emit(state.Event{Kind: state.Note, Text: line}) }
		m := environment.Maker(eng, say, in.String("ca-cert"), in.Bool("offline"))
		m.Progress = func(since time.Time, what string) { v.Emit(state.Event{Time: since, Kind: state.Progress, Text: what}) }
		lines, err := do(ctx, in, m)
		v.Close()
		for _, line := range lines {
			fmt.Fprintln(in.Stdout, line)
		}
		if err == nil && len(lines) == 0 {
			fmt.Fprintln(in.Stdout, "none")
		}
		return exit.OnEngine(err)
	}
}

func buildImages(ctx context.Context, in *cli.Input, m *images.Maker) (refs []string, err error) {
	makers := []func(context.Context) (string, error){m.Holder, m.Gateway}
	agents := in.Args
	if len(agents) == 0 {
		agents = images.Usual()
	}
	for _, agent := range agents {
		makers = append(makers, func(ctx context.Context) (string, error) { return m.Ensure(ctx, images.Want{Agent: agent}) })
	}
	for _, make := range makers {
		ref, err := make(ctx)
		if err != nil {
			return refs, err
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func saveImages(ctx context.Context, in *cli.Input) error {
	for _, agent := range in.Args[1:] {
		if !slices.Contains(images.Agents(), agent) {
			return cli.Usagef("images save takes %s after the file, not %q", wording.OneOf(images.Agents()), agent)
		}
	}
	f, err := os.OpenFile(in.Args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot save the images: %w", err),
			"name a new file in an existing folder")
	}
	save := onEngine(func(ctx context.Context, _ *cli.Input, m *images.Maker) ([]string, error) {
		return m.Save(ctx, &counted{Writer: f, report: m.Progress, begun: time.Now()}, in.Args[1:]...)
	})
	if err = errors.Join(save(ctx, in), f.Close()); err != nil {
		os.Remove(in.Args[0])
	}
	return err
}

func loadImages(ctx context.Context, in *cli.Input) error {
	path := os.Getenv(images.ArchiveVar)
	if len(in.Args) > 0 {
		path = in.Args[0]
	}
	if path == "" {
		return cli.WithHint("abl images load FILE, or set "+images.ArchiveVar, "cannot load images: no file is named")
	}
	f, err := os.Open(path)
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot load images: %w", err), "name a file that abl images save wrote")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot load images: %w", err), "")
	}
	return onEngine(func(ctx context.Context, _ *cli.Input, m *images.Maker) ([]string, error) {
		return m.Load(ctx, &counted{Reader: f, report: m.Progress, begun: time.Now(), size: info.Size()})
	})(ctx, in)
}

// counted reports how much of a file has been read or written.
type counted struct {
	io.Reader
	io.Writer
	report  func(time.Time, string)
	begun   time.Time
	n, size int64
}

// Read implements io.Reader.
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	c.report(c.begun, fmt.Sprintf("loading, %.1f of %.1f MB", float64(c.n)/1e6, float64(c.size)/1e6))
	return n, err
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	c.report(c.begun, fmt.Sprintf("saving, %.1f MB", float64(c.n)/1e6))
	return n, err
}

// imageDocument is one image as `abl images list --json` prints it.
type imageDocument struct {
	Name string `json:"name"`
	Made bool   `json:"made"`
	Ref  string `json:"ref"`
	Base string `json:"base,omitempty"`
	Size int64  `json:"size"` // bytes, with all below it
	Old  bool   `json:"old"`
}

func listImages(ctx context.Context, in *cli.Input) error {
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	all, err := environment.Maker(eng, func(string) {}, "", false).Status(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	documents, t := tableOfImages(all)
	return in.ShowTable(documents, t)
}

// tableOfImages returns the images as JSON and as a table.
func tableOfImages(all []images.State) (documents []imageDocument, t view.Table) {
	documents, t = []imageDocument{}, view.Table{Header: strings.Fields("IMAGE STATUS SIZE REFERENCE BASE"), Flex: 3}
	for _, s := range all {
		is, size, d := "missing", "", imageDocument{Name: s.Name, Made: s.Have, Ref: s.Ref, Size: s.Size, Old: s.Old}
		if s.Have {
			is, size, d.Base = "made", fmt.Sprintf("%d MB", (s.Size+500_000)/1_000_000), s.Origin
		}
		if s.Old {
			is = "other" // of another version of abl, or of a project
		}
		documents = append(documents, d)
		t.Rows = append(t.Rows, []string{d.Name, is, size, d.Ref, d.Base})
	}
	return documents, t
}

func removeImages(ctx context.Context, in *cli.Input, m *images.Maker) ([]string, error) {
	return m.Remove(ctx, in.Args...)
}
