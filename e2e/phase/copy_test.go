package phase

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// The app runs in a temporary copy of the commit and of the dependencies that app.prepare made.
// Each way to copy gives the app the same files, and the source and the dependencies stay
// unchanged.
func TestAppCopy(t *testing.T) {
	lab.Long(t)
	for _, how := range []string{"overlay", "tar"} {
		t.Run(how, func(t *testing.T) { copyCase(t, how) })
	}
}

// copyFiles and copyBytes are the size of the dependency folder.
const (
	copyFiles = 2_000
	copyBytes = 30 << 20
)

func copyCase(t *testing.T, how string) {
	if how == "overlay" {
		lab.Local(t)
	}
	prepare := strings.NewReplacer("SIZE", strconv.Itoa(copyBytes/copyFiles), "FOLDERS", strconv.Itoa(copyFiles/10)).
		Replace(lab.File(t, "scripts/make-dependencies.sh"))
	p := newProject(t, "app: {command: node server.mjs, prepare: sh prepare.sh, port: 3000, copy: "+how+", ready: {path: /}}\n",
		builds(hasApp(t, "writes-into-its-copy.mjs"), write("prepare.sh", prepare), write("kept.txt", "built"),
			write("run.sh", "#!/bin/sh\n", "0755"), write(".gitignore", "deps/\n"),
			run("ln -s kept.txt link"), run("mkdir -p deps/by-the-builder")),
		verifies(run("curl -s http://app:3000/"), run("echo")))
	r := p.Must(0, "phase", "1", "--json")
	wants(t, "the app's view", printed(p, "p1-verify-1.1"),
		fmt.Sprintf("ok 199 %d built and the app kept.txt executable git 0\n", copyBytes/copyFiles))
	if got := p.Read("src/kept.txt"); got != "built" {
		t.Errorf("kept.txt in the source: got %q, want built", got)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "src/written.txt")); !os.IsNotExist(err) {
		t.Errorf("written.txt of the app in the source: got %v, want that it does not exist", err)
	}
	if kept, err := filepath.Glob(filepath.Join(p.Dir, ".abl/cache/deps/*/deps/d7/f7")); err != nil || len(kept) != 1 {
		t.Errorf("the dependencies: got %q, error %v, want the file that the app deleted in its copy", kept, err)
	}
	if got := p.Git("src", "status", "--porcelain"); got != "" {
		t.Errorf("changes in src: got %s, want none", got)
	}
	checkNothingLeft(p)
	t.Logf("%s: from the start of the app's container to a ready app with %d files of %d MB: %v",
		how, copyFiles, copyBytes>>20, startOfApp(events(t, r)))
}

func startOfApp(all []state.Event) string {
	start, ready := of(all, state.AppStart), of(all, state.AppReady)
	if len(start) == 0 || len(ready) == 0 {
		return "never"
	}
	return ready[0].Time.Sub(start[0].Time).String()
}
