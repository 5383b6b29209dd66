package phase

import (
	"context"
	"io"
	"slices"

	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/orchestrator"
	"abl/roles"
)

// replays runs saved tests again, unless the person switched evidence off.
func (r *Run) replays() orchestrator.Replays {
	if r.Conf.Verify.Evidence == "off" {
		return nil
	}
	return &roles.Replayer{App: r.app, Image: r.jobs.Players[roles.Verifier.Name].Image, Tests: r.saved}
}

// saved writes the tests of a commit, or the Verifier's workspace as it left it,
// as a tar. Nobody writes there while a replay runs.
func (r *Run) saved(ctx context.Context, w io.Writer, commit, as string) error {
	if commit == "" {
		return hostfs.Tar(w, as, r.Paths.Tests, ".git")
	}
	return r.tests.Export(ctx, w, commit, as, git.Owner{UID: r.env.UID, GID: r.env.GID})
}

// challenge is what the tests are tried against besides the app.
func (r *Run) challenge() orchestrator.Challenge {
	asked := func(how string) bool { return slices.Contains(r.Conf.Verify.Challenge, how) }
	c := orchestrator.Challenge{Away: asked("away"), Null: asked("null-app")}
	if r.Conf.App != nil || !c.Null {
		return c
	}
	c.Null = false
	c.LeftOut = "the tests are not tried against null apps: without an app section nobody knows what stands in for the system"
	return c
}

// testNames are the files of the Verifier's.
func (r *Run) testNames(ctx context.Context) ([]string, error) {
	const most = 10_000
	return r.tests.Files(ctx, most)
}
