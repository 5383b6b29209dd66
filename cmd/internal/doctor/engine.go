package doctor

import (
	"context"
	"fmt"
	"os"
	"regexp"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/images"
	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles/agent"
	"abl/roles/environment"
)

// checkEngine looks at the engine and the images on it.
func checkEngine(ctx context.Context, in *cli.Input) []phase.Finding {
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return []phase.Finding{failed("engine", err)}
	}
	defer eng.Close()
	all := []phase.Finding{{What: "engine", OK: true, Text: fmt.Sprintf("Docker %s, API %s, %s/%s at %s", info.Version, info.API, info.OS, info.Arch, info.Host)}}
	states, err := environment.Maker(eng, func(string) {}, in.String("ca-cert"), in.Bool("offline")).Status(ctx)
	if err != nil {
		return append(all, failed("images", err))
	}
	for _, st := range states {
		text := "not made yet; the first phase, or `abl images build`, makes it"
		if st.Have {
			text = st.Ref
		}
		all = append(all, phase.Finding{What: "image", OK: true, Text: st.Name + ": " + text})
	}
	return append(all, checkAgents(ctx, eng, states)...)
}

// versionWord is a version in what a program says of itself.
var versionWord = regexp.MustCompile(`\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.+-]*[0-9A-Za-z])?`)

// checkAgents starts each agent whose image is made, without a network and without
// a key, and asks for its version. One without an image is no fault: a phase makes
// what it needs.
func checkAgents(ctx context.Context, eng sandbox.Engine, states []images.State) (all []phase.Finding) {
	for _, name := range agent.Names() {
		version := images.Version(name)
		if version == "" {
			continue // it needs no program of its own
		}
		f := phase.Finding{What: "agent", OK: true, Text: name + ": not installed; the first phase that it plays, or `abl images build " + name + "`, does that"}
		for _, st := range states {
			if st.Have && st.Name == name {
				words, err := askVersion(ctx, eng, name, st.Ref)
				f = judgeAgent(name, version, words, err)
			}
		}
		all = append(all, f)
	}
	return all
}

// judgeAgent compares what an agent says of itself with what abl was made for.
func judgeAgent(name, want, words string, err error) phase.Finding {
	said := versionWord.FindString(words)
	again := fmt.Sprintf("abl images remove %s && abl images build %s", name, name)
	switch {
	case err != nil:
		return phase.Finding{What: "agent", Text: fmt.Sprintf("%s: does not answer: %v", name, err), Hint: again}
	case said == "":
		return phase.Finding{What: "agent", Text: fmt.Sprintf("%s: answers without a version", name), Hint: again}
	case said != want:
		return phase.Finding{What: "agent", Text: fmt.Sprintf("%s: its image has version %s, and abl knows %s", name, said, want), Hint: again}
	}
	return phase.Finding{What: "agent", OK: true, Text: name + ": version " + said + " answers"}
}

// askVersion runs an agent's program with --version in a box of its own.
func askVersion(ctx context.Context, eng sandbox.Engine, name, image string) (words string, err error) {
	project := fmt.Sprintf("doctor-%d", os.Getpid())
	code, words, err := environment.Ask(ctx, eng, sandbox.Box{
		Name: "abl-" + project + "-" + name, Image: image, User: "10001:10001", Dir: "/tmp", Argv: []string{name, "--version"},
		Env:    []string{"HOME=" + helper.Home, "NO_COLOR=1"},
		Tmpfs:  []sandbox.Tmpfs{{Target: "/tmp", Size: 64 << 20, Owned: true}, {Target: helper.Home, Size: 512 << 20, Owned: true, Exec: true}},
		Limits: sandbox.Limits{Memory: 2 << 30, CPUs: 2, Pids: 256, OpenFile: 4096, FileSize: 512 << 20},
		Labels: map[string]string{sandbox.LabelProject: project, sandbox.LabelKind: "doctor"},
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("%s --version ends with code %d", name, code)
	}
	return words, err
}
