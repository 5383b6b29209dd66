package call

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/internal/testing/sandboxtest"
	"abl/roles"
)

// The stored files of a call contain no secrets or control characters.
func TestCallIsKeptSafe(t *testing.T) {
	r := newRig(t, nil)
	r.runner.Safe = rolestest.Hiding()
	r.Engine.Scripts = map[string]sandboxtest.Script{"role": func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "do print "+rolestest.Key+"\n"+rolestest.Key+rolestest.Evil+"\nused 7\n")
		rolestest.Must(t, os.WriteFile(sandboxtest.Host(b, helper.Err), []byte("err "+rolestest.Key[:8]+"\n"+rolestest.Key[8:]+rolestest.Evil), 0o644))
		r.Engine.Print(b.Name, `{"exit":127,"error":"no `+rolestest.Key+`\u001b[2J\u202e"}`)
		return sandbox.Exit{Code: 127}
	}}
	o := r.run()
	if got, want := show(o), `failed 127 could not be started: no [secret …11]\u001b[2J\u202e, m-1 7`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := r.Kinds(); !strings.HasPrefix(got, "call_start action:print [secret …11] ") {
		t.Errorf("events: got %s, want a call_start and a printed [secret …11] first", got)
	}
	rolestest.Spotless(t, r.runner.Project.Root)
	last, err := os.ReadFile(r.runner.Project.LastLog("builder"))
	if err != nil || !strings.HasPrefix(string(last), "do print [secret …11]\n[secret …11]\\u001b]0;t") {
		t.Errorf("last log: got %q, error %v, want one without the secret and escape sequences", last, err)
	}
	if again := r.run(); show(again) != show(o) {
		t.Errorf("second run: got %s, want %s", show(again), show(o))
	}
}

// If abl is killed after it has cleaned the output and before it writes the outcome, the next abl
// reads the same output and completes the last log.
func TestKeepingIsDoneAgain(t *testing.T) {
	r := newRig(t, rolestest.Says("do print "+rolestest.Key+rolestest.Evil+"\nused 7\nend", 0))
	r.runner.Safe = rolestest.Hiding()
	r.begin()
	_, err := r.Engine.Wait(t.Context(), r.runner.container(r.job))
	rolestest.Must(t, err)
	rolestest.Must(t, roles.CleanOutput(r.runner.Safe, filepath.Dir(r.rec().Stdout()), filepath.Base(r.rec().Stdout())))
	if got := show(r.run()); got != "done 0, m-1 7" {
		t.Errorf("call: got %s, want done 0, m-1 7", got)
	}
	rolestest.Spotless(t, r.runner.Project.Root)
}

func TestOutputThatCannotBeKept(t *testing.T) {
	r := newRig(t, rolestest.Says("end", 0))
	r.Engine.Scripts["role"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "end")
		path := sandboxtest.Host(b, helper.Err)
		rolestest.Must(t, os.Remove(path))
		rolestest.Must(t, os.Symlink("/etc/hostname", path))
		return sandbox.Exit{}
	}
	if _, err := r.runner.Run(t.Context(), r.job); err == nil {
		t.Error("error of a call whose output is a link: got none, want one")
	}
	if _, ended, err := r.rec().Outcome(); ended || err != nil {
		t.Errorf("outcome of the call: got ended %t, error %v, want none", ended, err)
	}
}
