package phase

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// checkContainers checks that only the memory of the gateway contains the key, and that the
// inspection, the arguments and the log of no container do.
func checkContainers(p *lab.Project, call, key string) {
	p.Helper()
	containers := func(kind string) []string {
		return strings.Fields(docker(p, "ps", "-q", "--no-trunc", "--filter", "label=abl.project="+p.ID(), "--filter",
			"label=abl.kind="+kind))
	}
	for _, kind := range []string{"role", "gateway", "holder"} {
		ids := containers(kind)
		if len(ids) == 0 {
			p.Errorf("call %s: got no container of kind %s, want one", call, kind)
		}
		for _, id := range ids {
			checkContainer(p, call, key, kind, id)
		}
	}
}

func checkContainer(p *lab.Project, call, key, kind, id string) {
	p.Helper()
	lacks(p, "the inspection of "+kind, docker(p, "inspect", id), key)
	lacks(p, "the processes of "+kind, docker(p, "top", id, "-eo", "pid,args"), key)
	lacks(p, "the log of "+kind, docker(p, "logs", id), key)
	holds := false
	for _, pid := range strings.Fields(docker(p, "top", id, "-eo", "pid"))[1:] {
		lacks(p, "the environment of "+kind, environ(pid), key)
		holds = holds || inMemory(pid, key)
	}
	if holds != (kind == "gateway") && os.Geteuid() == 0 {
		p.Errorf("call %s: the key in the memory of %s: got %v, want %v", call, kind, holds, !holds)
	}
}

func environ(pid string) string {
	text, _ := os.ReadFile("/proc/" + pid + "/environ") // the process may have ended
	return string(text)
}

// inMemory searches the writable memory of a process. Only root may read it.
func inMemory(pid, text string) bool {
	maps, err := os.ReadFile("/proc/" + pid + "/maps")
	if err != nil {
		return false // the process has ended, or the test is not root
	}
	mem, err := os.Open("/proc/" + pid + "/mem")
	if err != nil {
		return false // likewise
	}
	defer mem.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") ||
			to-from > 256<<20 {
			continue
		}
		part := make([]byte, to-from)
		if n, _ := mem.ReadAt(part, from); strings.Contains(string(part[:n]), text) {
			return true
		}
	}
	return false
}

// abl does not commit a secret of .env, in a file or in a name. It keeps the call, and the next
// run continues when the secret is gone or the user permits it.
func TestSecretIsNotCommitted(t *testing.T) {
	const value, key = "zx81klmq9pr3vt77", "sesame-of-the-gemini"
	hidden := base64.StdEncoding.EncodeToString([]byte("const k = '" + value + "'\n"))
	big := strings.Replace(lab.File(t, "scripts/hides-in-a-large-file.sh"), "echo VALUE", "echo "+value, 1)
	p := newProject(t, nodeApp,
		builds(write("server.mjs", server), write("conf/keys.txt", hidden), write("conf/more.txt", "k="+key), must(0, big)),
		verifies(write("case-"+value+".txt", "x")))
	p.Write(".env", "SHOP_CODE="+value+"\nGEMINI_API_KEY="+key+"\nPLAIN=conf/keys.txt\n")
	for range 2 {
		r := p.Must(9, "phase", "1")
		wants(t, "the error", r.Stderr, `"conf/keys.txt" has the value of SHOP_CODE`,
			`"conf/more.txt" has the value of GEMINI_API_KEY`, `"conf/big.txt" has the value of SHOP_CODE`, "allow_secrets")
		lacks(t, "it", r.Stdout+r.Stderr, value, key)
	}
	if got := p.Git("src", "rev-list", "--all", "--count"); got != "0" {
		t.Errorf("commits: got %s, want 0", got)
	}
	for _, name := range []string{"keys", "more", "big"} {
		if err := os.Remove(filepath.Join(p.Dir, "src/conf", name+".txt")); err != nil {
			t.Fatal(err)
		}
	}
	r := p.Must(9, "phase", "1")
	wants(t, "the error", r.Stderr, "has the value of SHOP_CODE")
	lacks(t, "it", r.Stdout+r.Stderr, value)
	p.Write(".abl/config.yaml", p.Read(".abl/config.yaml")+"commit: {allow_secrets: [SHOP_CODE]}\n")
	p.Must(0, "phase", "1")
	if got, want := calls(p), "p1-build-1.1 p1-verify-1.1"; got != want {
		t.Errorf("calls: got %s, want %s", got, want)
	}
	history := p.Git("src", "log", "--all", "-p")
	wants(t, "the history", history, "server.mjs")
	lacks(t, "the history", history, "keys.txt")
}
