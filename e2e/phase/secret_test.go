package phase

import (
	"fmt"
	"os"
	"strings"

	"abl/e2e/lab"
)

// lookAtBoxes finds the key in no box's inspection, arguments or log, and in the
// memory of one program alone: the gateway's.
func lookAtBoxes(p *lab.Project, call, key string) {
	p.Helper()
	kinds := map[string]bool{}
	for _, id := range strings.Fields(docker(p, "ps", "-q", "--no-trunc", "--filter", "label=abl.project="+p.ID())) {
		kind := docker(p, "inspect", "--format", `{{index .Config.Labels "abl.kind"}}`, id)
		kinds[kind] = true
		lacks(p, "the inspection of "+kind, docker(p, "inspect", id), key)
		lacks(p, "the processes of "+kind, docker(p, "top", id, "-eo", "pid,args"), key)
		lacks(p, "the log of "+kind, docker(p, "logs", id), key)
		holds := false
		for _, pid := range strings.Fields(docker(p, "top", id, "-eo", "pid"))[1:] {
			lacks(p, "the environment of "+kind, environ(pid), key)
			holds = holds || inMemory(pid, key)
		}
		if holds != (kind == "gateway") && os.Geteuid() == 0 {
			t := map[bool]string{true: "holds", false: "lacks"}[holds]
			p.Errorf("call %s: the memory of %s %s the key", call, kind, t)
		}
	}
	for _, kind := range []string{"role", "gateway", "holder"} {
		if !kinds[kind] {
			p.Errorf("call %s has no %s to look at", call, kind)
		}
	}
}

func environ(pid string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/environ") // it may have ended
	return string(text)
}

// inMemory searches what a process may write to. Only root may look.
func inMemory(pid, text string) bool {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return false // it ended, or only root may look
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		return false // likewise
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 256<<20 {
			continue
		}
		part := make([]byte, to-from)
		if n, _ := mem.ReadAt(part, from); strings.Contains(string(part[:n]), text) {
			return true
		}
	}
	return false
}
