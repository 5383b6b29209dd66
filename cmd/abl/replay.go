package main

import (
	"context"
	"io"
	"slices"

	"abl/internal/hostfs"
	"abl/orchestrator"
	"abl/orchestrator/workspace"
	"abl/roles"
)

// replays runs saved tests again, unless the person switched evidence off.
func (st *stage) replays() orchestrator.Replays {
	if st.conf.Verify.Evidence == "off" {
		return nil
	}
	return &roles.Replayer{App: st.app, Image: st.have.role[roles.Verifier.Name], Holder: st.site.Holder, Tests: st.saved}
}

// saved writes the tests of a commit, or the Verifier's workspace as it left it,
// as a tar. Nobody writes there while a replay runs.
func (st *stage) saved(ctx context.Context, w io.Writer, commit, as string) error {
	if commit == "" {
		return hostfs.Tar(w, as, st.project.Tests, ".git")
	}
	return st.tests.Export(ctx, w, commit, as, workspace.Owner{UID: st.uid, GID: st.gid})
}

// challenge is what the tests are tried against besides the app.
func (st *stage) challenge() orchestrator.Challenge {
	asked := func(how string) bool { return slices.Contains(st.conf.Verify.Challenge, how) }
	c := orchestrator.Challenge{Away: asked("away"), Null: asked("null-app"), Mutants: asked("mutants")}
	if st.conf.App != nil || !c.Null && !c.Mutants {
		return c
	}
	c.Null, c.Mutants = false, false
	c.LeftOut = "the tests are not tried against null apps or changed answers: without an app section nobody knows what stands in for the system"
	return c
}

// testNames are the files of the Verifier's.
func (st *stage) testNames(ctx context.Context) ([]string, error) {
	const most = 10_000
	names, _, err := st.tests.Files(ctx, most)
	return names, err
}
