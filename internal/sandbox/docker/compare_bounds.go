package docker

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"

	"abl/internal/sandbox"
)

// bounds checks the limits: what a program that wants more will get.
func bounds(box sandbox.Box, f found) sandbox.Proof {
	l, r := box.Limits, f.box.HostConfig.Resources
	swap := l.Memory
	if l.Memory > 0 && f.info.NoSwapLimit {
		swap = -1 // the kernel does not count swap, and the engine says so
	}
	return sandbox.Proof{
		sandbox.Same("memory", fmt.Sprintf("%d, with swap %d", l.Memory, swap), fmt.Sprintf("%d, with swap %d", r.Memory, r.MemorySwap)),
		sandbox.Same("memory kill", "on, score 500", memoryKill(f.box.HostConfig)),
		sandbox.Same("shared memory", fmt.Sprint(16<<20), fmt.Sprint(f.box.HostConfig.ShmSize)),
		sandbox.Same("processes", fmt.Sprint(l.Pids), fmt.Sprint(max(value(r.PidsLimit), 0))),
		sandbox.Same("cpus", cpusWant(l.CPUs, f.info.CPUs), cpusGot(r)),
		sandbox.Same("limits of files", ulimitsWant(l), ulimitsGot(r.Ulimits)),
	}
}

func memoryKill(h *container.HostConfig) string {
	on := "on"
	if value(h.OomKillDisable) {
		on = "off"
	}
	return fmt.Sprintf("%s, score %d", on, h.OomScoreAdj)
}

func cpusWant(want float64, have int) string {
	if have > 0 && want > float64(have) {
		want = float64(have)
	}
	return fmt.Sprintf("%.2f", want)
}

func cpusGot(r container.Resources) string {
	text := fmt.Sprintf("%.2f", float64(r.NanoCPUs)/1e9)
	if r.CPUQuota != 0 || r.CPUPeriod != 0 || r.CPURealtimeRuntime != 0 {
		text += fmt.Sprintf(" and a quota of %d in %d, %d of it in real time", r.CPUQuota, r.CPUPeriod, r.CPURealtimeRuntime)
	}
	return text
}

func ulimitsWant(l sandbox.Limits) string {
	all := []string{"core=0"}
	if l.FileSize > 0 {
		all = append(all, fmt.Sprintf("fsize=%d", l.FileSize))
	}
	if l.OpenFile > 0 {
		all = append(all, fmt.Sprintf("nofile=%d", l.OpenFile))
	}
	return list(all)
}

func ulimitsGot(limits []*container.Ulimit) string {
	var all []string
	for _, u := range limits {
		text := fmt.Sprintf("%s=%d", u.Name, u.Hard)
		if u.Soft != u.Hard {
			text += fmt.Sprintf(" (%d at first)", u.Soft)
		}
		all = append(all, strings.TrimSpace(text))
	}
	return list(all)
}
