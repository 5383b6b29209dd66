// Package setup has the commands that set a project up: init, guide, config and doctor. Package scaffold
// plans and writes the files of a project.
package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/project"
	"abl/images"
	"abl/internal/config"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/environment"
)

// DoctorCommand returns `abl doctor`.
func DoctorCommand() cli.Command {
	return cli.Command{
		Name:  "doctor",
		Group: cli.Starting,
		Usage: "check engine, images, keys and project",
		Long: `Checks everything that a phase needs, and changes nothing. Outside a project it checks
only the machine.

doctor starts each service of the app whose image exists, and stops it again. If the
project works on your repository and abl has built nothing yet, doctor also starts the
app as you committed it.

With --boundary it proves that the engine isolates containers from this machine, and
that a container of each role can see and reach only what it should. It also shows the
proofs that the last calls recorded.`,
		Examples: "abl doctor\nabl doctor --boundary",
		Flags: []cli.Flag{
			cli.JSONFlag(),
			{Name: "boundary", Usage: "prove the isolation of containers, check by check; exit code 8 if a check fails"},
		},
		Run: runDoctor,
	}
}

// runDoctor checks everything that a phase needs, and changes nothing in the project.
func runDoctor(ctx context.Context, in *cli.Input) error {
	if in.Bool("boundary") {
		return examineBoundary(ctx, in)
	}
	all := checkEngine(ctx, in)
	s, err := openAny(in)
	switch {
	case err != nil:
		all = append(all, failed("project", err))
	case s == nil:
		all = append(all, good("project", "no project here; `abl init` creates one"))
	default:
		all = append(all, checkProject(ctx, s)...)
	}
	if err := ctx.Err(); err != nil {
		return err // a check may have failed for that reason
	}
	var wrong []string
	for _, f := range all {
		if !f.OK {
			wrong = append(wrong, f.What)
		}
	}
	lines := []string{}
	for _, f := range all {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		lines = append(lines, fmt.Sprintf("%s  %-10s %s", mark, f.What,
			strings.ReplaceAll(f.Text, "\n", "\n                 ")))
		if !f.OK && f.Hint != "" {
			lines = append(lines, "                 → "+f.Hint)
		}
	}
	if in.Bool("json") {
		err = in.JSON(all)
	} else {
		err = in.Print(in.Lines(lines...))
	}
	if err == nil && len(wrong) > 0 {
		return exit.With(exit.Environment, fmt.Errorf("%d of %d checks failed: %s", len(wrong), len(all),
			strings.Join(wrong, ", ")), "")
	}
	return err
}

// openAny opens the project. It returns nil if there is no project and --project is not set.
func openAny(in *cli.Input) (*project.Project, error) {
	s, err := project.Open(in)
	if errors.Is(err, state.ErrNone) && !in.Set("project") {
		return nil, nil
	}
	return s, err
}

// finding is the result of a check.
type finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// good returns the finding of a check that passed.
func good(what, text string) finding { return finding{What: what, OK: true, Text: text} }

// failed returns the finding of a check that failed, with the error's hint.
func failed(what string, err error) finding {
	return finding{What: what, Text: err.Error(), Hint: exit.Hint(err)}
}

// checkEngine checks the engine and abl's images on it.
func checkEngine(ctx context.Context, in *cli.Input) []finding {
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return []finding{failed("engine", err)}
	}
	defer eng.Close()
	all := []finding{good("engine", fmt.Sprintf("Docker %s, API %s, %s/%s at %s", info.Version, info.API, info.OS,
		info.Arch, info.Host))}
	selinux := "the engine does not use it"
	if info.SELinux {
		selinux = "the engine confines containers with it; services stay confined, and abl's own containers, " +
			"which share files, run with label=disable"
	}
	all = append(all, good("selinux", selinux))
	states, err := environment.Maker(eng, func(string) {}, in.String("ca-cert"), in.Bool("offline")).Status(ctx)
	if err != nil {
		return append(all, failed("images", err))
	}
	return append(all, imageFindings(states)...)
}

// imageFindings returns a finding for each image of this abl, one that names the missing ones, and one
// that counts the others by name.
func imageFindings(states []images.State) (all []finding) {
	others, missing := map[string]int{}, map[string]bool{}
	for _, st := range states {
		switch {
		case st.Old:
			others[st.Name]++
		case st.Have:
			all = append(all, good("image", st.Name+": "+st.Ref))
		default:
			missing[st.Name] = true
		}
	}
	if len(missing) > 0 {
		all = append(all, good("image", "not built yet: "+strings.Join(slices.Sorted(maps.Keys(missing)), ", ")+
			"; the first phase that needs one builds it"))
	}
	var counts []string
	for _, name := range slices.Sorted(maps.Keys(others)) {
		counts = append(counts, fmt.Sprintf("%d %s", others[name], name))
	}
	if len(counts) > 0 {
		all = append(all, good("image", "of other versions of abl or of projects: "+strings.Join(counts, ", ")+
			"; `abl images prune` deletes those that no project uses"))
	}
	return all
}

// checkProject checks the settings, the specs, the keys, the services, the app and the disk.
func checkProject(ctx context.Context, s *project.Project) []finding {
	all := []finding{good("project", s.Paths.Root)}
	for _, c := range []struct {
		what  string
		check func() error
	}{
		{"state", func() error { _, err := s.State(); return err }},
		{"ledger", s.CheckLedger},
		{"budget", func() error {
			players, _ := s.Players() // checkPlayer reports the error
			return s.CheckCaps(players)
		}},
		{"images", s.CheckImages},
	} {
		if err := c.check(); err != nil {
			all = append(all, failed(c.what, err))
		}
	}
	builds := "the project's Dockerfiles are built on the engine's network (network.builds: engine)"
	if s.Conf.Network.Builds == config.BuildsHost {
		builds = "the project's Dockerfiles are built on this machine's network and can reach its servers (network.builds: " +
			"host)"
	}
	all = append(all, checkProxy(s.Conf))
	specs := s.Specs()
	n := len(specs.Numbers())
	sound := good("specs", fmt.Sprintf("%d valid, the last is phase%d.md", n, n))
	if stops := specs.Check(max(1, n)); len(stops) > 0 {
		sound = finding{What: "specs", Text: stops[0].String(), Hint: stops[0].Hint}
	}
	all = append(all, good("builds", builds), sound, good("app", appText(s.Conf)))
	if tools := s.Conf.Toolchain.Names(); len(tools) > 0 {
		all = append(all, good("toolchain", strings.Join(tools, ", ")))
	}
	if text := s.Prepares(); text != "" {
		all = append(all, good("prepare", text))
	}
	all = append(all, checkGit(ctx, s)...)
	for _, role := range roles.Both() {
		all = append(all, checkPlayer(s, role))
	}
	if err := s.Trusted(ctx); err != nil { // untrusted settings start no container
		all = append(all, failed("trust", err))
	} else {
		all = append(all, checkServices(ctx, s)...)
		all = append(all, checkBaseline(ctx, s)...)
	}
	return append(all, checkDisk(s.Paths.Root), checkEnv(ctx, s.Paths))
}

// checkEnv checks that git ignores .env.
func checkEnv(ctx context.Context, p state.Project) finding {
	text, err := project.EnvIgnored(ctx, p)
	if err != nil {
		return failed(".env", err)
	}
	return good(".env", text)
}

// checkBaseline starts the app of the user's repository as the user committed it. The first phase does
// the same before its first call.
func checkBaseline(ctx context.Context, s *project.Project) []finding {
	last, notes := "", ""
	ok, err := phase.Baseline(ctx, s, state.Func(func(e state.Event) {
		switch {
		case e.Kind == state.Note:
			notes += "; " + e.Text
		case e.Output != "":
			last = e.Output
		}
	}))
	switch {
	case err != nil:
		f := failed("baseline", err)
		f.Text += notes
		if last != "" {
			f.Text += "; the last lines of its output:\n" + last
		}
		return []finding{f}
	case ok:
		return []finding{good("baseline", "the app starts as you committed it")}
	}
	return nil
}

// checkProxy names the proxy through which requests leave this machine.
func checkProxy(conf *config.Loaded) finding {
	p, err := environment.ProxyOf(conf, os.Getenv)
	switch {
	case err != nil:
		return failed("proxy", err)
	case p.From == "":
		return good("proxy", "none; network.proxy, HTTPS_PROXY and HTTP_PROXY are not set")
	case p.Shown() == "":
		return good("proxy", "none for HTTPS; HTTP_PROXY is only for http:// addresses")
	case p.No != "":
		return good("proxy", p.Shown()+"; not for "+p.No)
	}
	return good("proxy", p.Shown())
}

// appText returns the kind of the app, and how abl replays its tests.
func appText(conf *config.Loaded) string {
	app, text := environment.AppSpec(conf), "declared commands start it; abl also runs the tests with the app stopped"
	switch {
	case app.IsProgram():
		text = "a program (kind: command); abl also runs the tests without it, against two null programs, " +
			"and with altered exit codes and output"
	case app != nil && app.Kind == helper.KindTCP:
		text = "a server at " + app.URL() + " (kind: tcp); abl also runs the tests with the app stopped, " +
			"against an app that sends nothing, and against one that sends a fixed line"
	case app != nil:
		text = "a web server at " + app.URL() + " (kind: http); abl also runs the tests with the app stopped, " +
			"against two null apps, and with altered responses"
	}
	if conf.Verify.Evidence == "off" {
		text, _, _ = strings.Cut(text, "; ")
		text += "; abl does not run the tests itself (verify.evidence: off)"
	}
	return text
}

// checkPlayer checks that the settings give a role an agent that abl can run.
func checkPlayer(s *project.Project, role roles.Role) finding {
	p, err := s.Player(role)
	if err != nil {
		return failed(role.Name, err)
	}
	name, tested := p.Agent.Name, images.Version(p.Agent.Name)
	if version := cmp.Or(p.Agent.Version, tested); version != "" {
		name += " " + version
		if version != tested {
			name += " (this abl is tested with " + tested + ")"
		}
	}
	f := good(role.Name, name+", model "+p.Models[0])
	if key, found := s.Key(p); key != "" {
		at := s.Address(p)
		f.OK, f.Text = found, fmt.Sprintf("%s, %s, at %s (%s: %s)", f.Text, key, at.Value, at.Key, at.Source)
		f.Hint = fmt.Sprintf("add %s=… to .env", p.Agent.Provider.KeyVar)
	}
	return f
}

// leastDisk is the free space that a phase needs, in bytes.
const leastDisk = 1 << 30

// checkDisk checks the free space of the project's disk.
func checkDisk(dir string) finding {
	left, err := hostfs.FreeSpace(dir)
	if err != nil {
		return failed("disk", err)
	}
	return finding{
		What: "disk",
		OK:   left.Bytes >= leastDisk,
		Text: fmt.Sprintf("%d MiB free", left.Bytes>>20),
		Hint: "free disk space: a phase needs at least 1 GiB",
	}
}
