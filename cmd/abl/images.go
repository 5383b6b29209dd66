package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/images"
	"abl/roles/environment"
)

func imagesCommand() cli.Command {
	return cli.Command{
		Name: "images", Group: cli.Upkeep, Usage: "build, save or load abl's images",
		Subs: []cli.Command{
			{Name: "build", Args: "[AGENT...]", MaxArgs: -1, Usage: "make the images that are missing, those for gemini and scripted unless told", Values: images.Agents(), Flags: cli.ImageFlags(), Run: buildImages},
			{Name: "save", Args: "FILE", MinArgs: 1, MaxArgs: 1, Usage: "write them to a file, for a machine without a network", Run: saveImages},
			{Name: "load", Args: "FILE", MinArgs: 1, MaxArgs: 1, Usage: "read them from such a file", Run: loadImages},
			{Name: "list", Usage: "say which are there", Run: listImages},
			{Name: "remove", Args: "[AGENT...]", MaxArgs: -1, Usage: "remove them from the engine, all unless told", Values: images.Agents(), Run: removeImages},
		},
	}
}

// withMaker calls do with a maker on the engine, its progress on stderr.
func withMaker(ctx context.Context, in *cli.Input, do func(*images.Maker) error) error {
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	return exit.OnEngine(do(environment.Maker(eng, func(line string) { in.Say("%s", line) }, in.String("ca-cert"), in.Bool("offline"))))
}

func buildImages(ctx context.Context, in *cli.Input) error {
	agents := in.Args
	if len(agents) == 0 {
		agents = images.Usual()
	}
	if err := checkAgentNames(agents); err != nil {
		return err
	}
	return withMaker(ctx, in, func(m *images.Maker) error {
		for _, make := range []func(context.Context) (string, error){m.Holder, m.Gateway} {
			ref, err := make(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintln(in.Stdout, ref)
		}
		for _, agent := range agents {
			ref, err := m.Ensure(ctx, images.Want{Agent: agent})
			if err != nil {
				return err
			}
			fmt.Fprintln(in.Stdout, ref)
		}
		return nil
	})
}

func checkAgentNames(names []string) error {
	for _, name := range names {
		if !slices.Contains(images.Agents(), name) {
			return cli.WithHint("it is one of "+strings.Join(images.Agents(), ", "), "there is no image for the agent %q", name)
		}
	}
	return nil
}

func saveImages(ctx context.Context, in *cli.Input) error {
	return withMaker(ctx, in, func(m *images.Maker) error {
		f, err := os.OpenFile(in.Args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return exit.With(exit.Usage, fmt.Errorf("cannot save the images: %w", err), "name a file that does not exist yet")
		}
		names, err := m.Save(ctx, f)
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(in.Args[0])
			return err
		}
		return printNames(in.Stdout, names)
	})
}

func loadImages(ctx context.Context, in *cli.Input) error {
	f, err := os.Open(in.Args[0])
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot load images: %w", err), "")
	}
	defer f.Close()
	return withMaker(ctx, in, func(m *images.Maker) error {
		names, err := m.Load(ctx, f)
		if err != nil {
			return err
		}
		return printNames(in.Stdout, names)
	})
}

func listImages(ctx context.Context, in *cli.Input) error {
	return withMaker(ctx, in, func(m *images.Maker) error {
		all, err := m.Status(ctx)
		if err != nil {
			return err
		}
		for _, s := range all {
			fmt.Fprintln(in.Stdout, imageLine(s))
		}
		return nil
	})
}

// imageLine says of an image whether it is there, and whose base it stands on.
func imageLine(s images.State) string {
	is, more := "missing", ""
	if s.Have {
		is = "made"
	}
	if s.Have && s.Origin != "" {
		more = " (base from " + s.Origin + ")"
	}
	return strings.TrimRight(fmt.Sprintf("%-12s %-8s %s%s", s.Name, is, s.Ref, more), " ")
}

func removeImages(ctx context.Context, in *cli.Input) error {
	if err := checkAgentNames(in.Args); err != nil {
		return err
	}
	return withMaker(ctx, in, func(m *images.Maker) error {
		names, err := m.Remove(ctx, in.Args...)
		return errors.Join(printNames(in.Stdout, names), err)
	})
}

func printNames(w io.Writer, names []string) error {
	if len(names) == 0 {
		names = []string{"none"}
	}
	_, err := fmt.Fprintln(w, strings.Join(names, "\n"))
	return err
}
