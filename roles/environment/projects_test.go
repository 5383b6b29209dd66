package environment

import (
	"testing"
	"time"

	"abl/internal/sandbox"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestProjects(t *testing.T) {
	at := func(n int64) time.Time { return time.Unix(n, 0) }
	object := func(kind sandbox.ObjectKind, id, key string, created time.Time, running bool) sandbox.Object {
		labels := map[string]string{sandbox.LabelProject: id, sandbox.LabelState: "state of " + id, sandbox.LabelDir: "here:/" + id}
		return sandbox.Object{Kind: kind, Name: sandbox.Name(id, key), Labels: labels, Created: created, Running: running}
	}
	foreign := object(sandbox.ContainerObject, "x", "a", at(1), true)
	foreign.Name = "their-container"
	before := object(sandbox.VolumeObject, "old", "a", at(3), false)
	delete(before.Labels, sandbox.LabelDir)
	got := projects([]sandbox.Object{
		object(sandbox.ContainerObject, "new", "a", at(9), true), object(sandbox.ContainerObject, "new", "b", at(7), false),
		object(sandbox.VolumeObject, "new", "c", time.Time{}, false), object(sandbox.NetworkObject, "new", "d", at(8), false),
		foreign, before,
	}, time.Now(), func(label, id string) bool { return label == "state of new" && id == "new" })
	want := []OnEngine{
		{ID: "old", Created: at(3), Volumes: 1},
		{ID: "new", Dir: "here:/new", Created: at(7), Containers: 2, Running: 1, Volumes: 1, Networks: 1, Lost: true},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(OnEngine{})); diff != "" {
		t.Errorf("projects (-want +got):\n%s", diff)
	}
	if got := projects(nil, time.Now(), nil); got == nil || len(got) > 0 {
		t.Errorf("projects of nothing: got %v, want an empty list that is not null in JSON", got)
	}
}
