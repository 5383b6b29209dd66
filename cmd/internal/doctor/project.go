package doctor

import (
	"context"
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/roles"
)

// checkProject looks at the settings, the specs, the keys and the disk.
func checkProject(ctx context.Context, s *phase.Project) []phase.Finding {
	all := []phase.Finding{{What: "project", OK: true, Text: s.Paths.Root}}
	for _, c := range []struct {
		what  string
		check func() error
	}{
		{"state", func() error { _, err := s.State(); return err }},
		{"ledger", s.CheckLedger}, {"budget", s.CheckCaps}, {"images", s.CheckImages},
	} {
		if err := c.check(); err != nil {
			all = append(all, failed(c.what, err))
		}
	}
	builds := "a Dockerfile of the project's is built on the engine's network (network.builds: engine)"
	if s.Conf.Network.Builds == config.BuildsHost {
		builds = "a Dockerfile of the project's is built on this machine's own network, with all that listens there in reach (network.builds: host)"
	}
	specs := s.Specs()
	n := len(specs.Numbers())
	sound := phase.Finding{What: "specs", OK: true, Text: fmt.Sprintf("%d sound, the last is phase%d.md", n, n)}
	if stops := specs.Check(max(1, n)); len(stops) > 0 {
		sound = phase.Finding{What: "specs", Text: stops[0].String(), Hint: stops[0].Hint}
	}
	all = append(all, phase.Finding{What: "builds", OK: true, Text: builds}, sound)
	for _, role := range roles.Both() {
		all = append(all, checkPlayer(s, role))
	}
	return append(all, checkDisk(s.Paths.Root), phase.Ignored(ctx, s.Paths))
}

// failed is that something is not as a phase needs it.
func failed(what string, err error) phase.Finding {
	return phase.Finding{What: what, Text: err.Error(), Hint: exit.Hint(err)}
}

func checkPlayer(s *phase.Project, role roles.Role) phase.Finding {
	p, err := s.Player(role)
	if err != nil {
		return failed(role.Name, err)
	}
	name := strings.TrimSpace(p.Agent.Name + " " + images.Version(p.Agent.Name))
	f := phase.Finding{What: role.Name, OK: true, Text: name + ", model " + p.Model}
	if vars := p.Agent.Provider; vars.API != "" {
		_, from := s.Key(vars.KeyVar)
		f.OK, f.Text = from != "", f.Text+", "+s.KeyText(vars.KeyVar)
		f.Hint = fmt.Sprintf("add %s=… to .env", vars.KeyVar)
	}
	return f
}

// leastDisk is the free space below which a phase is not worth starting, in bytes.
const leastDisk = 1 << 30

func checkDisk(dir string) phase.Finding {
	left, err := hostfs.FreeSpace(dir)
	if err != nil {
		return failed("disk", err)
	}
	return phase.Finding{What: "disk", OK: left.Bytes >= leastDisk, Text: fmt.Sprintf("%d MiB free", left.Bytes>>20), Hint: "make room: a phase needs at least 1 GiB"}
}
