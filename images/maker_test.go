package images

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"abl/internal/sandbox"
	"abl/internal/toolchain"
)

func names(refs []string) string {
	var out []string
	for _, r := range refs {
		name, _, _ := strings.Cut(strings.TrimPrefix(r, "abl/"), ":")
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestEnsureBuildsOnlyChangedImages(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	m.Env = also(m.Env, "GOPROXY", "off|https://proxy.example/,direct")
	ensure := func(w Want, want string) string {
		t.Helper()
		e.built = nil
		ref, err := m.Ensure(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got := names(e.built); got != want {
			t.Errorf("got built images %q, want %q", got, want)
		}
		return ref
	}
	first := ensure(Want{Agent: "gemini"}, "base tools gemini run-gemini")
	if again := ensure(Want{Agent: "gemini"}, ""); again != first {
		t.Errorf("second time: got %s, want %s", again, first)
	}
	ensure(Want{Agent: Tools}, "run-tools")
	own := filepath.Join(t.TempDir(), "builder.Dockerfile")
	write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nRUN true\n")
	ensure(Want{Agent: Tools, Dockerfile: own}, "project run-project")
	write(t, filepath.Join(filepath.Dir(own), "verifier.Dockerfile"), "x")
	ensure(Want{Agent: Tools, Dockerfile: own}, "")
	write(t, filepath.Join(filepath.Dir(own), "list.txt"), "x")
	ensure(Want{Agent: Tools, Dockerfile: own}, "project run-project")
	write(t, m.Env("ABL_HELPER"), string(append(staticELF("amd64", false), 1)))
	if ref := ensure(Want{Agent: "gemini"}, "run-gemini"); ref == first {
		t.Errorf("image for a new helper: got %s as before, want another tag", ref)
	}
	if e.pulls != 1 {
		t.Errorf("got %d pulls, want 1", e.pulls)
	}
	// Another version of an agent's program is another image beside the pinned one.
	ensure(Want{Agent: "codex", Version: "0.180.0"}, "codex run-codex")
	if got, want := e.args[e.built[0]]["AGENT_PACKAGE"], "@openai/codex@0.180.0-linux-x64"; got != want {
		t.Errorf("package: got %q, want %q", got, want)
	}
	ensure(Want{Agent: "codex"}, "codex run-codex")
	// Agents of the user's own: npm packages are a layer, an image of a registry is pulled once.
	ensure(Want{Agent: Tools, NPM: "a-linux-{arch}@1.2.3 b@1.0.0"}, "npm run-npm")
	if got, want := e.args[e.built[0]]["AGENT_PACKAGE"], "a-linux-x64@1.2.3 b@1.0.0"; got != want {
		t.Errorf("packages: got %q, want %q", got, want)
	}
	ensure(Want{Agent: Tools, NPM: "a-linux-{arch}@1.2.3 b@1.0.0"}, "")
	ensure(Want{Agent: "reg.example/agent:1"}, "image run-image")
	ensure(Want{Agent: "reg.example/agent:1"}, "")
	if e.pulls != 2 {
		t.Errorf("pulls: got %d, want 2, of a base and an agent's image", e.pulls)
	}
	e.images["reg.example/agent:1"]["digest"] = "another"
	ensure(Want{Agent: "reg.example/agent:1"}, "image run-image")
	e.pulls = 1
	// Each language is a layer, shared by agents and projects.
	one := toolchain.Set{Go: "1.26"}
	ensure(Want{Agent: Tools, Toolchain: one}, "go-1.26.10 run-go-1.26.10")
	if got := e.args[e.built[0]]; got["GOPROXY"] != "https://proxy.example" || got["GO_VERSION"] != "1.26.10" {
		t.Errorf("build arguments of Go: got %v, want GOPROXY=https://proxy.example and GO_VERSION=1.26.10", got)
	}
	ensure(Want{Agent: "gemini", Toolchain: one}, "gemini run-gemini")
	ensure(Want{
		Agent:     Tools,
		Toolchain: toolchain.Set{Go: "1.26.10", Node: "24", Python: "3.13"},
	}, "node-24.21.0 python-3.13 run-python-3.13")
	ensure(Want{Agent: Tools, Toolchain: toolchain.Set{Rust: "1.85", Java: "17"}}, "rust-1.85 java-17 run-java-17")
	for i, want := range []map[string]string{
		{"TOOL_VERSION": "1.85", "TOOL_SUITE": "trixie", "TOOL_PACKAGES": "cargo rustc", "TOOL_CHECK": "rustc --version"},
		{"TOOL_VERSION": "17", "TOOL_SUITE": "", "TOOL_PACKAGES": "openjdk-17-jdk-headless maven", "TOOL_CHECK": "mvn --version"},
	} {
		for name, value := range want {
			if got := e.args[e.built[i]][name]; got != value {
				t.Errorf("%s of %s: got %q, want %q", name, e.built[i], got, value)
			}
		}
	}
	ensure(Want{Agent: Tools}, "run-tools")
	ensure(Want{Agent: Tools, Toolchain: toolchain.Set{Node: "22"}}, "")
	ensure(Want{Agent: Tools, Toolchain: toolchain.Set{Go: "1.26.1"}}, "go-1.26.1 run-go-1.26.1")
	if got := e.args[e.built[0]]; got["GO_VERSION"] != "1.26.1" || got["GO_PIN"] != "1.26.10" {
		t.Errorf("build arguments of Go: got %v, want GO_VERSION=1.26.1 and GO_PIN=1.26.10", got)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// A service's image is built only from its Dockerfile: its entrypoint is not replaced.
func TestServiceImageHasNoHelperOnTop(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	file := filepath.Join(t.TempDir(), dockerfileName)
	write(t, file, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nCMD [\"serve\"]\n")
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: file, Service: true})
	if err != nil || e.images[ref][LabelImage] != projectImage {
		t.Errorf("service's image: got %s with labels %v, error %v, want %s=%s",
			ref, e.images[ref], err, LabelImage, projectImage)
	}
	other, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: file})
	if err != nil || other == ref || e.images[other][LabelImage] != runPrefix+projectImage {
		t.Errorf("app's image: got %s with labels %v, error %v, want another image with %s=%s",
			other, e.images[other], err, LabelImage, runPrefix+projectImage)
	}
}

func TestBaseIsPinnedAndFoundThroughItsChildren(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	ref, err := m.Ensure(t.Context(), Want{Agent: Tools})
	if err != nil {
		t.Fatal(err)
	}
	base := e.images[ref][labelBase]
	if got := e.args[base]["ABL_IMAGE"]; got != e.digest {
		t.Errorf("got a base on %q, want the digest %q", got, e.digest)
	}
	if got := e.images[ref][labelOrigin]; got != e.digest {
		t.Errorf("got origin %q, want %q", got, e.digest)
	}
	delete(e.images, base)
	again, err := m.Ensure(t.Context(), Want{Agent: Tools})
	if err != nil || again != ref || e.pulls != 1 {
		t.Errorf("without the base's own name: got %s, error %v after %d pulls, want %s after 1", again, err, e.pulls, ref)
	}
	// With all images removed, another digest changes the tags of all images.
	clear(e.images)
	e.digest = "debian@sha256:def"
	again, err = m.Ensure(t.Context(), Want{Agent: Tools})
	if err != nil || again == ref {
		t.Errorf("another base: got %s, error %v, want another tag", again, err)
	}
}

func TestOfflineBuildsOnlyTheHelperLayer(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	m.Offline = true
	_, err := m.Ensure(t.Context(), Want{Agent: Tools})
	if !errors.Is(err, sandbox.ErrNoImage) || !strings.Contains(err.Error(), "abl images load FILE") {
		t.Errorf("offline and empty: got error %v, want %v with %q", err, sandbox.ErrNoImage, "abl images load FILE")
	}
	if e.pulls != 0 || len(e.built) != 0 {
		t.Errorf("offline: got %d pulls and built images %v, want none", e.pulls, e.built)
	}
	m.Offline = false
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
		t.Fatal(err)
	}
	m.Offline = true
	write(t, m.Env("ABL_HELPER"), string(append(staticELF("amd64", false), 7)))
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
		t.Errorf("offline with the tools: got error %v, want none", err)
	}
	if _, err := m.Holder(t.Context()); err != nil {
		t.Errorf("offline holder: got error %v, want none", err)
	}
	if _, err := m.Ensure(t.Context(), Want{Agent: "gemini"}); !errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("offline without gemini: got error %v, want %v", err, sandbox.ErrNoImage)
	}
}

func TestNoRegistryAndNoBase(t *testing.T) {
	e := newFake()
	e.digest, e.arch = "", otherArch()
	_, err := testMaker(t, e).Ensure(t.Context(), Want{Agent: Tools})
	if !errors.Is(err, sandbox.ErrNoImage) {
		t.Fatalf("got error %v, want ErrNoImage", err)
	}
	for _, word := range []string{"abl images load FILE", "registry", "root", "no such host"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("without a registry: got error %q, want one with %q", err, word)
		}
	}
}

func TestStagesAreRemovedEvenWhenABuildFails(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	e.fail = func(ref, _ string) []string {
		if strings.HasPrefix(ref, "abl/gemini") {
			return []string{"npm error code E404"}
		}
		return nil
	}
	e.images["sha256:old"] = map[string]string{labelStage: "1000-x"}
	e.images["sha256:live"] = map[string]string{labelStage: "99999999999-x"}
	_, err := m.Ensure(t.Context(), Want{Agent: "gemini"})
	var failed *BuildError
	if !errors.As(err, &failed) || !errors.Is(err, sandbox.ErrNoImage) ||
		!slices.Contains(failed.Lines, "npm error code E404") {
		t.Fatalf("failed build: got error %v, want a *BuildError with the line %q", err, "npm error code E404")
	}
	left, _, err := e.ListImages(t.Context(), labelStage)
	if err != nil || len(left) != 1 || left["sha256:live"] == nil {
		t.Errorf("stages left: got %v, error %v, want only that of another build", left, err)
	}
}

func TestCancelledBuildIsNotAFailure(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	e.fail = func(string, string) []string { cancel(); return []string{"half"} }
	if _, err := m.Ensure(ctx, Want{Agent: Tools}); !errors.Is(err, context.Canceled) ||
		errors.Is(err, sandbox.ErrNoImage) {
		t.Errorf("cancelled build: got error %v, want %v without %v", err, context.Canceled, sandbox.ErrNoImage)
	}
}

func TestHostNetworkIfTheBridgeCannotResolveNames(t *testing.T) {
	e := newFake()
	m := testMaker(t, e)
	e.fail = func(_, network string) []string {
		if network == "" {
			return []string{"Temporary failure resolving 'mirror'"}
		}
		return nil
	}
	if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.networks, ","); got != ",host,,host,none" {
		t.Errorf("networks: got %q, want %q", got, ",host,,host,none")
	}
}

// A project's Dockerfile may print anything: it gets the host's network only by the user's
// setting.
func TestOutputOfAProjectNeverGivesItTheHostNetwork(t *testing.T) {
	for _, proxy := range []string{"", "http://127.0.0.1:3128"} {
		e := newFake()
		m := testMaker(t, e)
		m.Env = also(m.Env, "HTTPS_PROXY", proxy)
		own := filepath.Join(t.TempDir(), "Dockerfile")
		write(t, own, "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nONBUILD RUN false\n")
		if _, err := m.Ensure(t.Context(), Want{Agent: Tools}); err != nil {
			t.Fatal(err)
		}
		e.fail = func(string, string) []string { return []string{"EAI_AGAIN Temporary failure resolving 'mirror'"} }
		for host, want := range map[bool]string{false: "", true: "host"} {
			e.networks, m.Host = nil, host
			if _, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own}); err == nil ||
				strings.Join(e.networks, ",") != want {
				t.Errorf("proxy %q, host network permitted %v: got networks %q, error %v, want %q and an error",
					proxy, host, e.networks, err, want)
			}
		}
		e.fail = func(ref, _ string) []string {
			if strings.HasPrefix(ref, "abl/run-") {
				return []string{"EAI_AGAIN"}
			}
			return nil
		}
		e.networks = nil
		if _, err := m.Ensure(t.Context(), Want{Agent: Tools, Dockerfile: own}); err == nil ||
			e.networks[len(e.networks)-1] != "none" {
			t.Errorf("an image on a project's image: got networks %q, error %v, want none as the last one and an error",
				e.networks, err)
		}
	}
}

func TestPlan(t *testing.T) {
	chain := []recipe{{ref: "base"}, {ref: "tools"}, {ref: "gemini"}, {ref: "run-gemini"}}
	for name, c := range map[string]struct{ have, want string }{
		"nothing-there":          {"", "base tools gemini run-gemini"},
		"all-there":              {"base tools gemini run-gemini", ""},
		"helper-changed":         {"base tools gemini run-gemini:old", "run-gemini"},
		"the-top-alone":          {"run-gemini", ""},
		"base-removed-tools-not": {"tools", "gemini run-gemini"},
		"only-others":            {"debian:bookworm-slim", "base tools gemini run-gemini"},
	} {
		t.Run(name, func(t *testing.T) {
			s := seen{labels: map[string]map[string]string{}}
			for ref := range strings.FieldsSeq(c.have) {
				s.labels[ref] = nil
			}
			var refs []string
			for _, r := range plan(s, chain) {
				refs = append(refs, r.ref)
			}
			if got := strings.Join(refs, " "); got != c.want {
				t.Errorf("got plan %q, want %q", got, c.want)
			}
		})
	}
}
