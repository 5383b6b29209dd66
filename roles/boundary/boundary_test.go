package boundary

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

func TestInside(t *testing.T) {
	dir := t.TempDir()
	container := sandbox.ContainerConfig{
		User: "1:2",
		Mounts: []sandbox.Mount{
			{What: sandbox.Workspace, Source: dir, Target: helper.Src},
			{What: sandbox.GitDir, Source: dir, Target: helper.Src + "/.git", ReadOnly: true},
			{What: sandbox.Specs, Source: dir, Target: helper.Specs, ReadOnly: true},
			{What: sandbox.CallOut, Source: dir, Target: helper.Out},
			{What: sandbox.Tree, Source: "volume", Target: "/app"},
		},
		Tmpfs: []sandbox.Tmpfs{{Target: "/tmp"}, {Target: "/home/agent", Exec: true}},
	}
	absent := []string{helper.Tests, helper.Src + "/.abl", "/tmp/p/.env", "/p/.env"}
	spec := Inside(container, map[string]string{"KEY": "secret", "PATH": "/bin"}, []string{"a"}, absent)
	if err := Identify(&spec, container.Mounts); err != nil {
		t.Fatal(err)
	}
	spec.Net = Net(&HostServer{Listening: helper.Listening{Word: "w", TCP: "1", UDP: "2", Hosts: []string{"10.0.0.1", "fe80::1%eth0"}}}, true)
	if spec.Env["KEY"] != helper.Digest("secret") || spec.Env["PATH"] != helper.Digest("/bin") || spec.Env["HOSTNAME"] != "" || strings.Contains(fmt.Sprint(spec), "secret") {
		t.Errorf("environment: got %v, want digests of KEY and PATH, no HOSTNAME and no secret", spec.Env)
	}
	if got := fmt.Sprint(spec.Folders); got != "map[/abl/in:[a] /abl/out:[stdout] /workspace:[specs src]]" {
		t.Errorf("folders: got %s, want map[/abl/in:[a] /abl/out:[stdout] /workspace:[specs src]]", got)
	}
	if got := fmt.Sprint(spec.Sealed); got != "[/ /abl/bin /workspace /abl/out /workspace/src/.git /workspace/specs]" {
		t.Errorf("sealed: got %s, want %s",
			got, "[/ /abl/bin /workspace /abl/out /workspace/src/.git /workspace/specs]")
	}
	if got := fmt.Sprint(spec.Absent); got != "[/workspace/tests /p/.env]" {
		t.Errorf("absent: got %s, want [/workspace/tests /p/.env]", got)
	}
	if m := spec.Mounts; len(m) != 7 || m[0].Inode == 0 || m[4].Inode != 0 || !m[5].Memory || m[5].Exec || !m[6].Exec {
		t.Errorf("mounts: got %+v, want 7, with inodes except for volumes, and only the last one executable", m)
	}
	if n := spec.Net; fmt.Sprint(n.TCP, n.UDP) != "[10.0.0.1:1 [fe80::1%eth0]:1] [10.0.0.1:2 [fe80::1%eth0]:2]" || !n.Weak || Net(nil, false).Port != "" {
		t.Errorf("network: got %+v, want both hosts by TCP and UDP, and weak", n)
	}
	container.Mounts[0].Source = dir + "/gone"
	if err := Identify(&spec, container.Mounts); err == nil || !strings.Contains(err.Error(), "gone") {
		t.Errorf("missing source: got error %v, want one with %q", err, "gone")
	}
}

// A probe whose report lacks a check is detected.
func TestMissing(t *testing.T) {
	spec := helper.ProbeSpec{Mounts: []helper.ProbeMount{{Target: "/m", Inode: 1}}, Folders: map[string][]string{"/f": nil}, Sealed: []string{"/s"}, Net: &helper.ProbeNet{Names: []string{"n"}, Peers: []helper.ProbePeer{{At: "p"}}}}
	all := Missing(spec, nil)
	for _, name := range []string{"mount /m inside", "identity of /m", "all in /f", "writing in /s", "name n", "peer p", "the host by tcp", "environment inside"} {
		if !slices.Contains(all, name) {
			t.Errorf("missing checks: got %q, want %q in them", all, name)
		}
	}
	var whole sandbox.Proof
	for _, name := range all {
		whole = append(whole, sandbox.Check{Name: name})
	}
	if left := Missing(spec, whole); len(left) > 0 {
		t.Errorf("missing checks of a complete report: got %q, want none", left)
	}
}

// A firewall may block an ordinary network, so a missing response there does not fail the proof.
func TestControl(t *testing.T) {
	for name, c := range map[string]struct {
		control sandbox.Proof
		want    string
	}{
		"heard":    {sandbox.Proof{sandbox.Same("the host by tcp", "", "said the word")}, "it does"},
		"silent":   {sandbox.Proof{sandbox.Same("the host by tcp", "", "")}, "an ordinary network does not reach it either"},
		"no check": {nil, "an ordinary network does not reach it either"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := controlled(c.control); !got.OK || !strings.HasPrefix(got.Got, c.want) {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

// TestHostServer checks that the server counts what arrives, and that another server of the same
// name does not respond for it.
func TestHostServer(t *testing.T) {
	for name, c := range map[string]struct {
		arrived int
		word    string
		want    string
	}{
		"silence":        {0, "word", "0"},
		"datagrams":      {2, "word", "2"},
		"another server": {0, "other", "unknown: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &sandboxtest.Engine{Arrived: c.arrived}
				labels := map[string]string{sandbox.LabelProject: "p", sandbox.LabelKind: "helper", sandbox.LabelDeadline: "9"}
				container := HostContainer(sandbox.ContainerConfig{Name: "abl-p-listener", Image: "i", User: "1:1", Labels: labels})
				_, err := e.Create(t.Context(), container)
				err = errors.Join(err, e.Start(t.Context(), container.Name))
				line, herr := e.Head(t.Context(), container.Name, maxLine)
				b, rerr := ReadHostServer(e, container.Name, line)
				if err := errors.Join(err, herr, rerr); err != nil {
					t.Fatal(err)
				}
				if got := b.At(b.TCP); len(got) != 2 || got[0] != "192.0.2.1:1001" {
					t.Errorf("got addresses %q, want 192.0.2.1:1001", got)
				}
				b.Word = c.word
				if got := b.Arrived(t.Context()); !strings.HasPrefix(got.Got, c.want) || got.OK != (c.want == "0") {
					t.Errorf("got %+v, want %q", got, c.want)
				}
			})
		})
	}
	for _, line := range []string{"", "x\n", "{}\n", `{"word":"w","tcp":"1"}`} {
		if _, err := ReadHostServer(nil, "n", []byte(line)); !errors.Is(err, sandbox.ErrUnproven) {
			t.Errorf("got error %v for %q, want %v", err, line, sandbox.ErrUnproven)
		}
	}
}
