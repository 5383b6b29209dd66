package images

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/internal/sandbox/docker"
)

// realMaker returns a maker with the machine's own engine. All images of these tests are built on
// the holder's image, so that they need no network.
func realMaker(t *testing.T) (*Maker, *docker.Engine) {
	t.Helper()
	if os.Getenv("ABL_TEST_ENGINE") == "off" {
		t.Skip("ABL_TEST_ENGINE=off: no tests with a real engine")
	}
	e, err := docker.Connect(t.Context(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(t.TempDir(), "abl-cmd")
	// This test has its own helper, so that no other test shares its images.
	write(t, path, string(append(staticELF(runtime.GOARCH, false), rand.Text()...)))
	return &Maker{Engine: e, Env: environ("ABL_HELPER", path)}, e
}

func TestEngineHolderIsBuiltOnce(t *testing.T) {
	m, e := realMaker(t)
	var steps []string
	m.Out = func(s string) { steps = append(steps, s) }
	ref, err := m.Holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, ref)
	if len(steps) == 0 || !strings.HasPrefix(steps[len(steps)-1], "holder: built in ") {
		t.Errorf("progress: got %q, want a last line that starts with %q", steps, "holder: built in ")
	}
	steps = nil
	again, err := m.Holder(t.Context())
	if err != nil || again != ref || len(steps) != 0 {
		t.Errorf("second time: got %s, error %v, output %q, want %s and no output", again, err, steps, ref)
	}
	modes := layerModes(t, save(t, e, ref))
	for name, want := range map[string]int64{"abl/bin/": 0o755, "abl/bin/abl-cmd": 0o755} {
		t.Run(name, func(t *testing.T) {
			if modes[name]&0o777 != want {
				t.Errorf("got mode %[2]o of %[1]s in the image, want %[3]o", name, modes[name], want)
			}
		})
	}
}

func remove(t *testing.T, e *docker.Engine, ref string) {
	t.Helper()
	if err := e.RemoveImage(t.Context(), ref); err != nil {
		t.Error(err)
	}
}

func save(t *testing.T, e *docker.Engine, ref string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := e.SaveImages(t.Context(), &file, []string{ref}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// A stage trusts a certificate. The image that is built from it does not contain the certificate
// in any layer or in its history, and the stage is removed.
func TestEngineCertificateStaysInTheStage(t *testing.T) {
	m, e := realMaker(t)
	holder, err := m.Holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, holder)
	secret := rand.Text() + rand.Text()
	m.CACert = filepath.Join(t.TempDir(), "ca.pem")
	write(t, m.CACert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(secret)})))
	certs, err := m.certificates()
	if err != nil {
		t.Fatal(err)
	}
	mark := bytes.Split(certs, []byte("\n"))[1]
	r := stageRecipe(holder, "COPY --from=fetch /abl /copied\n").sealed("any")
	if err := m.build(t.Context(), r, r.labels()); err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, r.ref)
	for _, ref := range []string{r.ref, holder} {
		if holds(t, save(t, e, ref), mark) {
			t.Errorf("search for the certificate in %s: got found, want not found", ref)
		}
	}
	noStageLeft(t, e, holder)
	// The search must find the certificate in an image that copies it.
	leaky := stageRecipe(holder, "COPY --from=fetch /fetch /fetch\n").sealed("any")
	if err := m.build(t.Context(), leaky, leaky.labels()); err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, leaky.ref)
	if !holds(t, save(t, e, leaky.ref), mark) {
		t.Errorf("search for the certificate in %s: got not found, want found", leaky.ref)
	}
}

func TestEngineFailedBuildLeavesNoStage(t *testing.T) {
	m, e := realMaker(t)
	holder, err := m.Holder(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, holder)
	r := stageRecipe(holder, "COPY --from=fetch /nowhere /x\n").sealed("any")
	err = m.build(t.Context(), r, r.labels())
	var failed *BuildError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "nowhere") || len(failed.Lines) == 0 {
		t.Errorf("failed build: got error %v, want a *BuildError with lines and %q", err, "nowhere")
	}
	noStageLeft(t, e, holder)
}

// stageRecipe returns a build like the embedded ones, but without a network.
func stageRecipe(parent, last string) recipe {
	return recipe{
		name:   "test-images",
		parent: parent,
		stage:  true,
		files: []entry{bytesEntry(dockerfileName, 0o644, []byte(
			"ARG ABL_IMAGE\nFROM ${ABL_IMAGE} AS fetch\nARG ABL_BUILD\nLABEL abl.stage=${ABL_BUILD}\n"+
				"COPY ca.crt /fetch/\nFROM ${ABL_IMAGE}\n"+last))},
	}
}

// noStageLeft checks that no stage built on this test's holder is left. It finds them by the
// inherited hash or by the parent.
func noStageLeft(t *testing.T, e *docker.Engine, ref string) {
	t.Helper()
	images, _, err := e.ListImages(t.Context(), LabelInputs)
	if err != nil {
		t.Fatal(err)
	}
	for other, labels := range images {
		if labels[labelStage] != "" && (labels[LabelInputs] == images[ref][LabelInputs]) {
			t.Errorf("stage %s: got labels %v, want it removed", other, labels)
		}
	}
}

// holds searches an archive of images, whose layers may be compressed.
func holds(t *testing.T, file, mark []byte) bool {
	t.Helper()
	return slices.ContainsFunc(members(t, file), func(m member) bool { return bytes.Contains(m.data, mark) })
}

type member struct {
	header *tar.Header
	data   []byte
}

func members(t *testing.T, file []byte) []member {
	t.Helper()
	var all []member
	for tr := tar.NewReader(bytes.NewReader(file)); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, member{header: h, data: unzipped(data)})
	}
}

func unzipped(data []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return data
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		return data
	}
	return plain
}

// layerModes returns the mode of every file in every layer of an archive.
func layerModes(t *testing.T, file []byte) map[string]int64 {
	t.Helper()
	modes := map[string]int64{}
	for _, m := range members(t, file) {
		if _, err := tar.NewReader(bytes.NewReader(m.data)).Next(); err != nil {
			continue
		}
		for _, inner := range members(t, m.data) {
			modes[inner.header.Name] = inner.header.Mode
		}
	}
	return modes
}

// A project's own Dockerfile is built once, on the tools, with its folder as the context.
func TestEngineProjectDockerfile(t *testing.T) {
	m, e := realMaker(t)
	// If the tools are missing, their downloads may need the environment.
	m.Env = also(os.Getenv, "ABL_HELPER", m.Env("ABL_HELPER"))
	dir := t.TempDir()
	m.CACert = filepath.Join(t.TempDir(), "ca.pem")
	write(t, m.CACert, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("authority")})))
	own := filepath.Join(dir, "builder.Dockerfile")
	write(t, filepath.Join(dir, "data.txt"), "hello "+rand.Text())
	write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nCOPY data.txt /\n"+
		"RUN grep -q BEGIN \"$SSL_CERT_FILE\" && test \"$GIT_SSL_CAINFO\" = \"$SSL_CERT_FILE\"\n"+
		"RUN grep -q hello /data.txt && node --version && npm --version && python3 -c 'import json' && jq --version "+
		"&& rg --version && curl --version && git -C / status 2>&1 | grep -q 'not a git'\n"+
		"ENTRYPOINT [\"/bin/false\"]\nUSER 1234\n")
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own})
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := e.ListImages(t.Context(), LabelImage)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := chain(s, Want{Agent: Tools, Dockerfile: own}, entry{})
	if err != nil {
		t.Fatal(err)
	}
	defer remove(t, e, c[len(c)-2].ref)
	defer remove(t, e, ref)
	if all[ref][LabelImage] != "run-project" || all[ref][labelBase] == "" {
		t.Errorf("labels of %s: got %v, want %s=run-project and a value of %s", ref, all[ref], LabelImage, labelBase)
	}
	said := 0
	m.Out = func(string) { said++ }
	if again, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own}); err != nil || again != ref || said != 0 {
		t.Errorf("second time: got %s, error %v, %d lines of output, want %s and no output", again, err, said, ref)
	}
}

// A step that fails on the engine is reported while it runs, and shown in full, without the steps
// before it.
func TestEngineFailedStepIsShownInFull(t *testing.T) {
	m, _ := realMaker(t)
	m.Env = also(os.Getenv, "ABL_HELPER", m.Env("ABL_HELPER"))
	own := filepath.Join(t.TempDir(), "builder.Dockerfile")
	write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nRUN seq 1001 1300 && exit 3\n")
	var said, live []string
	m.Out = func(line string) { said = append(said, line) }
	m.Progress = func(_ time.Time, what string) { live = append(live, what) }
	_, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own})
	if err == nil || !strings.Contains(err.Error(), "code: 3") || !strings.Contains(err.Error(), "| 1300") {
		t.Errorf("got error %v, want the exit code and the last lines", err)
	}
	var want []string
	for i := range 300 {
		want = append(want, fmt.Sprintf("project | %d", 1001+i))
	}
	shown := slices.DeleteFunc(slices.Clone(said),
		func(line string) bool { return !strings.HasPrefix(line, "project | 1") })
	if !slices.Equal(shown, want) || !regexp.MustCompile(`^project \| Step \d/\d : RUN seq 1001 1300 && exit 3$`).MatchString(said[0]) {
		t.Errorf("got output %q, want only the failed step with all of its 300 lines", said)
	}
	step := regexp.MustCompile(`^project: step \d/\d RUN seq 1001 1300 && exit 3$`) // builders count steps differently
	if got := slices.IndexFunc(live, step.MatchString); got < 0 {
		t.Errorf("got progress %q, want a line that matches %s", live, step)
	}
}
