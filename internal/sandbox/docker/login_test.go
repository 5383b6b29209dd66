package docker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/sandbox"
	testlab "abl/internal/testing/lab"
)

// loggedIn returns an engine for a user with this Docker config.
func loggedIn(t *testing.T, config string) *Engine {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := Connect(t.Context(), func(name string) string {
		if name == "DOCKER_CONFIG" {
			return dir
		}
		return os.Getenv(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// An image of a registry that requires a login is pulled, and used as a base with both builders,
// with the credentials of the Docker config or of its helper.
func TestLogin(t *testing.T) {
	testlab.Engine(t)
	testlab.Egress(t)
	helpers, err := filepath.Abs("testdata/helpers")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", helpers+":"+os.Getenv("PATH"))
	r := testlab.NewRegistry(t, "me", "my-password")
	auth := base64.StdEncoding.EncodeToString([]byte("me:my-password"))
	wrong := base64.StdEncoding.EncodeToString([]byte("me:yesterday's"))
	for name, c := range map[string]struct{ config, want string }{
		"none":   {`{}`, "abl found no credentials for it: run `docker login " + r.Host + "`"},
		"auths":  {fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host, auth), ""},
		"wrong":  {fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, r.Host, wrong), "rejected your credentials"},
		"helper": {fmt.Sprintf(`{"credHelpers": {%q: "gives"}}`, r.Host), ""},
		"store":  {`{"credsStore": "gives"}`, ""},
		"fails":  {fmt.Sprintf(`{"credHelpers": {%q: "fails"}}`, r.Host), "the store is locked"},
	} {
		t.Run(name, func(t *testing.T) {
			e, mark := loggedIn(t, c.config), strings.ToLower(rand.Text())
			ref := r.Add("team/"+mark, map[string][]byte{"note": []byte(mark)})
			t.Cleanup(func() { _ = e.RemoveImage(context.WithoutCancel(t.Context()), ref) })
			_, err := e.Pull(t.Context(), ref, func(string) {})
			checkError(t, "pull", err, c.want)
			if c.want == "" {
				_ = e.RemoveImage(t.Context(), ref)
			}
			for _, kit := range []bool{false, true} {
				built := fmt.Sprintf("abl-test-login:%s-%t", mark, kit)
				from := r.Add(fmt.Sprintf("team/%s-%t", mark, kit), map[string][]byte{"note": []byte(built)})
				file := oneFile(t, "Dockerfile", "FROM "+from+"\nCOPY Dockerfile /\nLABEL abl.project=test-login\n")
				err := e.Build(t.Context(), file, sandbox.ImageBuild{Ref: built, Images: []string{from}, BuildKit: kit}, nil)
				switch {
				case c.want == "":
					checkError(t, built, err, "")
				case err == nil:
					t.Errorf("build of %s without credentials: got no error, want one", built)
				}
				_ = e.RemoveImage(t.Context(), built)
				_ = e.RemoveImage(t.Context(), from)
			}
		})
	}
}

func checkError(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// BuildKit's steps become lines of the classic builder. A failed step is printed again with all its
// output, even if other steps ran in parallel.
func TestBuildKitLines(t *testing.T) {
	e := engine(t)
	if !e.buildKit {
		t.Skip("this engine has no BuildKit")
	}
	mark := strings.ToLower(rand.Text())
	built := "abl-test-kit:" + mark
	t.Cleanup(func() { _ = e.RemoveImage(context.WithoutCancel(t.Context()), built) })
	build := func(text string) (lines []string, err error) {
		t.Helper()
		b := sandbox.ImageBuild{Ref: built, Args: map[string]string{"PROBE": probeImage}, BuildKit: true}
		err = e.Build(t.Context(), oneFile(t, "Dockerfile", text), b, func(line string) { lines = append(lines, line) })
		return lines, err
	}
	const top = "ARG PROBE\nFROM ${PROBE}\nARG TARGETARCH\nLABEL abl.arch=${TARGETARCH}\nCOPY --chmod=0700 Dockerfile /x\n"
	lines, err := build(top)
	if err != nil || !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Step 2/2 : COPY --chmod=0700") }) {
		t.Errorf("build: got error %v and lines %q, want no error and %q", err, lines, "Step 2/2 : COPY --chmod=0700")
	}
	found, _, err := e.ListImages(t.Context(), "abl.arch")
	if err != nil || found[built]["abl.arch"] == "" {
		t.Errorf("labels of %s: got %v, error %v, want TARGETARCH in abl.arch", built, found[built], err)
	}
	lines, err = build(top + "RUN [\"/probe\", \"no-such-act\", \"" + mark + "\"]\n")
	last := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "Step 3/3 : RUN") })
	if err == nil || last < 0 {
		t.Errorf("build: got error %v and lines %q, want an error and the step that failed", err, lines)
	}
}

// An invalid report is an error.
func FuzzTrace(f *testing.F) {
	f.Add([]byte("\n\x0c\n\x011\x1a\x05[1/2]*\x00\x1a\x06\n\x011\"\x01x"))
	f.Fuzz(func(t *testing.T, report []byte) {
		steps := trace{say: func(string) {}, steps: map[string]*vertex{}}
		aux, err := json.Marshal(base64.StdEncoding.EncodeToString(report))
		if err != nil {
			t.Fatal(err)
		}
		_ = steps.read(aux)
	})
}
