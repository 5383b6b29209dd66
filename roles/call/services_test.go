package call

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/roles/boundary"
)

// newTrialRig returns a Builder with a service.
func newTrialRig(t *testing.T, says string) *rig {
	t.Helper()
	r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
		rolestest.Prints(b, "end")
		return sandbox.Exit{}
	})
	r.Engine.Scripts["abl-id-await"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		r.Engine.Print(trial, "no space\x1b[31m left\n")
		r.Engine.Print(b.Name, says+"\n")
		return sandbox.Exit{}
	}
	r.runner.Trial, r.job.Place = true, boundary.PlaceBuilder
	r.job.Trials = []boundary.ServiceContainer{{
		Service: helper.Service{Name: "db", Port: 5432, TimeoutMS: 1000}, Image: "db-image",
		Files: map[string][]byte{"/init/seed.sql": []byte("one"), "/etc/db.conf": []byte("two")},
	}}
	return r
}

const trial = "abl-id-trial-db"

// journal returns the engine calls that create and remove a service, in order.
func (r *rig) journal() string {
	var all []string
	for line := range strings.Lines(r.Engine.Journal()) {
		word, of, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains([]string{"Create", "Start", "Remove", "CopyIn"}, word) && (strings.HasPrefix(of, trial) || of == "abl-id-await" || of == "abl-id-p1-build-1.1") {
			all = append(all, word+" "+strings.TrimPrefix(of, "abl-id-"))
		}
	}
	return strings.Join(all, ", ")
}

// A Builder's services are created and seeded before its call, checked from its network, and removed
// with it.
func TestTrials(t *testing.T) {
	r := newTrialRig(t, `{"event":"ready"}`)
	if o := r.run(); show(o) != "done 0" {
		t.Errorf("call: got %s, want done 0", show(o))
	}
	const want = "Remove trial-db, Create trial-db, CopyIn trial-db /etc, CopyIn trial-db /init, Start trial-db, " +
		"Remove await, Create await, Start await, Remove await, " +
		"Remove p1-build-1.1, Create p1-build-1.1, Start p1-build-1.1, Remove p1-build-1.1, Remove trial-db"
	if got := r.journal(); got != want {
		t.Errorf("journal: got\n%s, want\n%s", got, want)
	}
	r.WantLeft("abl-id-holder-builder", "abl-id-holder-trial-db", "abl-id-listener", "abl-id-net-trial")
	r.Engine.Forget()
	r.run()
	if got, want := r.journal(), "Remove p1-build-1.1, Remove trial-db"; got != want {
		t.Errorf("journal of the next run: got %s, want %s", got, want)
	}
}

// A Builder and its services reach only each other.
func TestTrialsReach(t *testing.T) {
	r := newTrialRig(t, `{"event":"ready"}`)
	var service, call, await sandbox.ContainerConfig
	r.Engine.Scripts["role"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		service, _ = r.Engine.Config(trial)
		call = b
		rolestest.Prints(b, "end")
		return sandbox.Exit{}
	}
	says := r.Engine.Scripts["abl-id-await"]
	r.Engine.Scripts["abl-id-await"] = func(b sandbox.ContainerConfig) sandbox.Exit { await = b; return says(b) }
	r.run()
	for _, c := range []struct {
		container     sandbox.ContainerConfig
		reach, holder string
	}{
		{service, "abl-id-net-trial as db", "abl-id-holder-trial-db"},
		{call, "abl-id-net-trial", "abl-id-holder-builder"},
		{await, "abl-id-net-trial", "abl-id-holder-builder"},
	} {
		if got := rolestest.ShowReach(sandbox.Reach{Endpoints: c.container.Reach.Through}); got != c.reach || c.container.Reach.Join != c.holder {
			t.Errorf("%s: got %s by %s, want %s by %s", c.container.Name, got, c.container.Reach.Join, c.reach, c.holder)
		}
	}
	r.runner.Gated = map[string]bool{boundary.PlaceBuilder: true}
	for place, want := range map[string]string{boundary.PlaceBuilder: "abl-id-net-builder, abl-id-net-trial", "trial-db": "abl-id-net-trial as db"} {
		if got := rolestest.ShowReach(r.runner.Reach(place)); got != want {
			t.Errorf("networks of %s with a gateway: got %s, want %s", place, got, want)
		}
	}
	if !service.Loose || !service.Below || service.Labels[sandbox.LabelCall] != r.job.Call.ID || service.Limits != rolestest.Limits {
		t.Errorf("container of the service: got %+v, want a loose one with the label and the limits of the call", service)
	}
}

// An abl that attaches to a running call leaves its services unchanged.
func TestResumedCallKeepsItsTrials(t *testing.T) {
	r := newTrialRig(t, `{"event":"ready"}`)
	goes := make(chan bool)
	r.Engine.Scripts["role"] = func(b sandbox.ContainerConfig) sandbox.Exit {
		<-goes
		rolestest.Prints(b, "end")
		return sandbox.Exit{}
	}
	rolestest.Must(t, r.runner.prepareNetwork(t.Context(), r.job, time.Now().Add(time.Hour)))
	r.begin()
	r.Engine.Forget()
	close(goes)
	if o := r.run(); show(o) != "done 0" {
		t.Errorf("call: got %s, want done 0", show(o))
	}
	if got, want := r.journal(), "Remove p1-build-1.1, Remove trial-db"; got != want {
		t.Errorf("journal: got %s, want %s", got, want)
	}
}

// A service that does not respond, or cannot be seeded, ends the call before it begins.
func TestTrialsFail(t *testing.T) {
	r := newTrialRig(t, `{"event":"failed","name":"db","detail":"port 5432: connection refused"}`)
	_, err := r.runner.Run(t.Context(), r.job)
	if want := `cannot start the service "db": port 5432: connection refused; its log ends: no space\x1b[31m left`; !errors.Is(err, boundary.ErrService) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	r = newTrialRig(t, `{"event":"failed","name":"../other","detail":"x"}`)
	if _, err := r.runner.Run(t.Context(), r.job); err == nil || err.Error() != `cannot start the service "../other": x` {
		t.Errorf("error of an unknown service: got %v, want one that names %q", err, "../other")
	}
	r = newTrialRig(t, `{"event":"ready"}`)
	r.Engine.Fail("CopyIn", 1, errors.New("no such folder"))
	if _, err := r.runner.Run(t.Context(), r.job); err == nil || !strings.Contains(err.Error(), `service "db": cannot copy a file to "/etc/db.conf": `) {
		t.Errorf("error of a missing folder: got %v, want one that names %q", err, "/etc/db.conf")
	}
	r = newTrialRig(t, "rubbish")
	if _, err := r.runner.Run(t.Context(), r.job); err == nil || !strings.Contains(err.Error(), "cannot wait for the services: the probe printed") {
		t.Errorf("error of an invalid line of the probe: got %v, want one about the probe's output", err)
	}
	r = newTrialRig(t, `{"event":"ready"}`)
	if _, err := r.runner.Run(rolestest.Cancelled(t), r.job); !errors.Is(err, context.Canceled) || strings.Contains(r.journal(), "Create p1") {
		t.Errorf("cancelled call: got error %v, journal %s, want %v and no container of the call",
			err, r.journal(), context.Canceled)
	}
}
