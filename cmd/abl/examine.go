package main

import (
	"context"
	"fmt"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// checkEngine looks at the engine and the images on it.
func checkEngine(ctx context.Context, in *cli.Input) []finding {
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return []finding{{What: "engine", Text: err.Error(), Hint: exit.Hint(err)}}
	}
	defer eng.Close()
	all := []finding{{What: "engine", OK: true, Text: fmt.Sprintf("Docker %s, API %s, %s/%s at %s", info.Version, info.API, info.OS, info.Arch, info.Host)}}
	states, err := environment.Maker(eng, func(string) {}, in.String("ca-cert"), in.Bool("offline")).Status(ctx)
	if err != nil {
		return append(all, finding{What: "images", Text: err.Error(), Hint: exit.Hint(err)})
	}
	for _, st := range states {
		text := "not made yet; the first phase, or `abl images build`, makes it"
		if st.Have {
			text = st.Ref
		}
		all = append(all, finding{What: "image", OK: true, Text: st.Name + ": " + text})
	}
	return append(all, checkAgents(ctx, eng, states)...)
}

// checkProject looks at the settings, the specs, the keys and the disk.
func (s *session) checkProject(ctx context.Context) []finding {
	all := []finding{{What: "project", OK: true, Text: s.project.Root}}
	if _, err := s.state(); err != nil {
		all = append(all, finding{What: "state", Text: err.Error()})
	}
	if err := s.checkLedger(); err != nil {
		all = append(all, finding{What: "ledger", Text: err.Error()})
	}
	if err := s.checkCaps(); err != nil {
		all = append(all, finding{What: "budget", Text: err.Error(), Hint: exit.Hint(err)})
	}
	if err := s.checkImages(); err != nil {
		all = append(all, finding{What: "images", Text: err.Error(), Hint: exit.Hint(err)})
	}
	all = append(all, s.builds())
	specs := s.specs()
	if stops := specs.Check(max(1, len(specs.Numbers()))); len(stops) > 0 {
		all = append(all, finding{What: "specs", Text: stops[0].String(), Hint: stops[0].Hint})
	} else {
		all = append(all, finding{What: "specs", OK: true, Text: fmt.Sprintf("%d sound, the last is phase%d.md", len(specs.Numbers()), len(specs.Numbers()))})
	}
	for _, role := range roles.Both() {
		all = append(all, s.checkPlayer(role))
	}
	return append(all, checkDisk(s.project.Root), s.checkIgnored(ctx))
}

// builds names the network that a Dockerfile of the project's is built on.
func (s *session) builds() finding {
	text := "a Dockerfile of the project's is built on the engine's network (network.builds: engine)"
	if s.conf.Network.Builds == config.BuildsHost {
		text = "a Dockerfile of the project's is built on this machine's own network, with all that listens there in reach (network.builds: host)"
	}
	return finding{What: "builds", OK: true, Text: text}
}

func (s *session) checkPlayer(role roles.Role) finding {
	p, err := s.player(role)
	if err != nil {
		return finding{What: role.Name, Text: err.Error(), Hint: exit.Hint(err)}
	}
	name := strings.TrimSpace(p.Agent.Name() + " " + images.Version(p.Agent.Name()))
	f := finding{What: role.Name, OK: true, Text: name + ", model " + p.Model}
	if vars, served := agent.ProviderOf(p.Agent); served {
		name := vars.KeyVar
		_, from := s.key(name)
		f.OK, f.Text = from != "", f.Text+", "+s.keyText(name)
		f.Hint = fmt.Sprintf("add %s=… to .env", name)
	}
	return f
}

// leastDisk is the free space below which a phase is not worth starting, in bytes.
const leastDisk = 1 << 30

func checkDisk(dir string) finding {
	left, err := hostfs.FreeSpace(dir)
	if err != nil {
		return finding{What: "disk", Text: err.Error()}
	}
	return finding{What: "disk", OK: left.Bytes >= leastDisk, Text: fmt.Sprintf("%d MiB free", left.Bytes>>20), Hint: "make room: a phase needs at least 1 GiB"}
}
