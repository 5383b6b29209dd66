package docker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"

	"abl/internal/sandbox"
)

// compare is the pure part of Prove. What should be is said here in words of
// its own and not taken from profile.go, so that a slip there is found.
func compare(box sandbox.Box, f found) sandbox.Proof {
	var p sandbox.Proof
	for _, part := range []func(sandbox.Box, found) sandbox.Proof{program, privileges, bounds, mountChecks, netChecks, leftOut} {
		p = append(p, part(box, f)...)
	}
	return p
}

// program checks what will run, as whom, and with which environment.
func program(box sandbox.Box, f found) sandbox.Proof {
	c, health := f.box.Config, "NONE"
	if box.Loose {
		health = strings.Join(value(value(f.image.Config).Healthcheck).Test, " ")
	}
	return sandbox.Proof{
		sandbox.Same("state", string(sandbox.Created), string(toState(f.box.State))),
		sandbox.Same("image", box.Image+" "+f.image.ID, c.Image+" "+f.box.Image),
		sandbox.Same("command", commandOf(box, f), quoted(append([]string{f.box.Path}, f.box.Args...))),
		user(box, c),
		sandbox.Same("folder", cmp.Or(box.Dir, value(f.image.Config).WorkingDir), c.WorkingDir),
		environment(box, f),
		sandbox.Same("terminal", fmt.Sprint(box.Term), fmt.Sprint(c.Tty || c.AttachStdin)),
		sandbox.Same("standard input", fmt.Sprint(box.Term || box.Stdin), fmt.Sprint(c.OpenStdin)),
		labels(box, c),
		sandbox.Same("health check", health, strings.Join(value(c.Healthcheck).Test, " ")),
	}
}

// value is what p points at, and nothing where that is nowhere.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// commandOf is what the box's init will start: the box's own words, which for a
// loose one are the arguments of the image's entry point.
func commandOf(box sandbox.Box, f found) string {
	if !box.Loose {
		return quoted(box.Argv)
	}
	d := value(f.image.Config)
	words := box.Argv
	if len(words) == 0 {
		words = d.Cmd
	}
	return quoted(append(slices.Clone(d.Entrypoint), words...))
}

func quoted(words []string) string { return fmt.Sprintf("%q", words) }

// user refuses root whatever was intended; only a service of the person's own
// choosing may keep its image's user.
func user(box sandbox.Box, c *container.Config) sandbox.Check {
	if box.Loose && box.User == "" {
		return sandbox.Check{Name: "user", Want: "the image's own", Got: cmp.Or(c.User, "root"), OK: true}
	}
	if box.Seals {
		return sandbox.Same("user", "0:0", c.User) // by itself it becomes the box's user
	}
	check := sandbox.Same("user", box.User, c.User)
	uid, _, _ := strings.Cut(c.User, ":")
	if strings.Trim(uid, "0") == "" {
		check.Want, check.OK = "not root", false
	}
	return check
}

// environment checks names and values, and shows names alone: a value may be a
// token, and a proof is kept.
func environment(box sandbox.Box, f found) sandbox.Check {
	want := pairs(value(f.image.Config).Env)
	maps.Copy(want, pairs(box.Env))
	got := pairs(f.box.Config.Env)
	names := slices.Sorted(maps.Keys(got))
	for i, name := range names {
		if value, ok := want[name]; ok && value != got[name] {
			names[i] = name + " with another value"
		}
	}
	return sandbox.Same("environment", strings.Join(slices.Sorted(maps.Keys(want)), " "), strings.Join(names, " "))
}

// labels checks that those intended are there; an image may add its own.
func labels(box sandbox.Box, c *container.Config) sandbox.Check {
	var want, got []string
	for _, key := range slices.Sorted(maps.Keys(box.Labels)) {
		want = append(want, key+"="+box.Labels[key])
		got = append(got, key+"="+c.Labels[key])
	}
	return sandbox.Same("labels", strings.Join(want, " "), strings.Join(got, " "))
}

// bounds checks the limits: what a program that wants more will get.
func bounds(box sandbox.Box, f found) sandbox.Proof {
	l, h := box.Limits, f.box.HostConfig
	swap, cpus := l.Memory, l.CPUs
	if l.Memory > 0 && f.info.NoSwapLimit {
		swap = -1 // the kernel does not count swap, and the engine says so
	}
	if f.info.CPUs > 0 {
		cpus = min(cpus, float64(f.info.CPUs))
	}
	files := []string{"core 0 to 0"}
	for name, most := range map[string]int64{"fsize": l.FileSize, "nofile": l.OpenFile} {
		if most > 0 {
			files = append(files, fmt.Sprintf("%s %d to %d", name, most, most))
		}
	}
	var limits []string
	for _, u := range h.Ulimits {
		limits = append(limits, fmt.Sprintf("%s %d to %d", u.Name, u.Soft, u.Hard))
	}
	const memory, share = "%d, with swap %d", "%.2f, a quota of %d in %d, %d of it in real time"
	return sandbox.Proof{
		sandbox.Same("memory", fmt.Sprintf(memory, l.Memory, swap), fmt.Sprintf(memory, h.Memory, h.MemorySwap)),
		sandbox.Same("memory kill", "off false, score 500", fmt.Sprintf("off %t, score %d", value(h.OomKillDisable), h.OomScoreAdj)),
		sandbox.Same("shared memory", fmt.Sprint(16<<20), fmt.Sprint(h.ShmSize)),
		sandbox.Same("processes", fmt.Sprint(l.Pids), fmt.Sprint(max(value(h.PidsLimit), 0))),
		sandbox.Same("cpus", fmt.Sprintf(share, cpus, 0, 0, 0),
			fmt.Sprintf(share, float64(h.NanoCPUs)/1e9, h.CPUQuota, h.CPUPeriod, h.CPURealtimeRuntime)),
		sandbox.Same("limits of files", list(files), list(limits)),
	}
}
