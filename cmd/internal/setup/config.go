package setup

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/wording"
	"abl/internal/yamlfile"
	"abl/roles"
)

// ConfigCommand returns `abl config`.
func ConfigCommand() cli.Command {
	return cli.Command{
		Name:  "config",
		Group: cli.Inspecting,
		Args:  "[KEY]",
		Usage: "print the settings, or change one",
		Long: `Prints every setting with its value and where the value comes from. With KEY, prints the
value only; with the beginning of a key, such as limits, the settings below it.

The last of these that sets a value wins: defaults, .abl/config.yaml, ABL_* in .env,
ABL_* in the environment (ABL_LOOP_CALL_TIMEOUT=10m), flags. docs/config.md describes
each setting.`,
		Examples: "abl config\nabl config limits\nabl config models.builder\nabl config set limits.memory 8g",
		Flags:    []cli.Flag{cli.JSONFlag()},
		Run:      project.Looking(runConfig),
		Subs: []cli.Command{{
			Name:  "set",
			Args:  "KEY VALUE",
			Usage: "change a setting in .abl/config.yaml",
			Long: `Changes the line of KEY, or adds one, and keeps all other lines. It refuses a value that
abl would refuse in the file. Commas separate the items of a list.`,
			Examples: "abl config set limits.memory 8g\nabl config set models.builder gemini-3.8-flash",
			Run:      project.Looking(runConfigSet),
		}},
	}
}

func runConfig(_ context.Context, s *project.Project) error {
	all := s.Conf.Lines()
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if a := s.Address(p); err == nil && a.Key != "" && !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	if len(s.In.Args) > 0 {
		key, keys := s.In.Args[0], []string{}
		for _, l := range all {
			keys = append(keys, l.Key)
		}
		all = slices.DeleteFunc(all, func(l config.Line) bool { return l.Key != key && !strings.HasPrefix(l.Key, key+".") })
		if len(all) == 0 {
			return noSetting(key, keys)
		}
		if all[0].Key == key && !s.In.Bool("json") {
			_, err := fmt.Fprintln(s.In.Stdout, all[0].Value)
			return err
		}
	}
	t := view.Table{Header: []string{"KEY", "VALUE", "SOURCE"}, Flex: 1}
	for _, l := range all {
		t.Rows = append(t.Rows, []string{l.Key, l.Value, l.Source})
	}
	return s.In.ShowTable(all, t)
}

// noSetting returns the error for a key that is not in keys.
func noSetting(key string, keys []string) error {
	hint := "abl config lists the settings"
	if near := wording.Near(key, keys); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return cli.WithHint(hint, "there is no setting %q", key)
}

func runConfigSet(ctx context.Context, s *project.Project) error {
	key, file := s.In.Args[0], s.Conf.File
	if known := config.Settable(); !slices.Contains(known, key) {
		return noSetting(key, known)
	}
	data, err := hostfs.Read(s.Paths.Root, file, maxSettings)
	if err != nil {
		return fmt.Errorf("cannot change the settings: %w", err)
	}
	e := yamlfile.NewEdit(file, data)
	e.Set(key, yamlfile.Inline(config.Config{}, key, s.In.Args[1]))
	if data, err = e.Bytes(); err != nil {
		return exit.With(exit.Usage, err, "edit the file by hand")
	}
	if err := accepted(file, data); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot set %s: %w", key, err), "")
	}
	if err := hostfs.Write(filepath.Join(s.Paths.Root, file), data, 0o644); err != nil {
		return fmt.Errorf("cannot write the settings: %w", err)
	}
	changed, err := project.OpenAt(s.In, s.Paths.Root)
	if err != nil {
		return err
	}
	s.In.Args = s.In.Args[:1]
	for _, l := range changed.Conf.Lines() {
		if l.Key == key && !strings.HasPrefix(l.Source, file) {
			s.In.Say("note: %s overrides it", l.Source)
		}
	}
	return runConfig(ctx, changed)
}
