package images

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"abl/internal/toolchain"
)

func TestHashCoversEveryInput(t *testing.T) {
	fresh := func() recipe {
		return recipe{
			name:   "tools",
			parent: "abl/base:1",
			args:   map[string]string{"NODE": "1"},
			files: []entry{
				bytesEntry("Dockerfile", 0o644, []byte("FROM x")), bytesEntry("b", 0o644, []byte("b")), linkEntry("l",
					"b"), dirEntry("d", 0o755),
			},
		}
	}
	want := fresh().sealed("amd64")
	turned := fresh()
	slices.Reverse(turned.files)
	if got := turned.sealed("amd64"); got.ref != want.ref {
		t.Errorf("the order of the files changed the tag: got %s, want %s", got.ref, want.ref)
	}
	for name, change := range map[string]func(*recipe){
		"name":       func(r *recipe) { r.name = "other" },
		"parent":     func(r *recipe) { r.parent = "abl/base:2" },
		"arg":        func(r *recipe) { r.args["NODE"] = "2" },
		"more-args":  func(r *recipe) { r.args["NPM"] = "" },
		"bytes":      func(r *recipe) { r.files[1] = bytesEntry("b", 0o644, []byte("c")) },
		"mode":       func(r *recipe) { r.files[1].mode = 0o755 },
		"file-name":  func(r *recipe) { r.files[1].name = "c" },
		"link":       func(r *recipe) { r.files[2].link = "c" },
		"fewer":      func(r *recipe) { r.files = r.files[:3] },
		"Dockerfile": func(r *recipe) { r.files[0] = bytesEntry("Dockerfile", 0o644, []byte("FROM y")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := fresh()
			change(&r)
			if got := r.sealed("amd64"); got.inputs == want.inputs {
				t.Errorf("hash after a change of %s: got %s as before, want another one", name, got.inputs)
			}
		})
	}
	if got := fresh().sealed("arm64"); got.inputs == want.inputs {
		t.Errorf("hash on arm64: got %s as on amd64, want another one", got.inputs)
	}
}

func TestRecipesOfEveryArchitecture(t *testing.T) {
	refs := map[string]bool{}
	for arch, npm := range map[string]string{"amd64": "x64", "arm64": "arm64"} {
		for _, agent := range Agents() {
			set := toolchain.Set{Go: "1.26", Node: "24", Python: "3.13", Rust: "1.85", Java: "21"}
			c, err := layersFor(seen{arch: arch}, Want{Agent: agent, Toolchain: set})
			if err != nil {
				t.Fatalf("%s on %s: %v", agent, arch, err)
			}
			top := c[len(c)-1]
			if refs[top.ref] {
				t.Errorf("tag of %s on %s: got %s of another image, want its own", agent, arch, top.ref)
			}
			refs[top.ref] = true
			for _, r := range c[1:] {
				checkEmbedded(t, r)
				for name, want := range map[string]string{
					"NODE_PACKAGE": "node-linux-" + npm + "@",
					"GO_ARCH":      arch,
					"GO_SUM":       "h1:",
					"NODE_SUM":     "",
					"NPM_SUM":      "",
				} {
					if got, ok := r.args[name]; ok && (got == "" || !strings.HasPrefix(got, want)) {
						t.Errorf("%s of %s on %s: got %q, want %s…", name, r.name, arch, got, want)
					}
				}
				if pack := r.args["AGENT_PACKAGE"]; pack != "" &&
					(!strings.Contains(pack, Version(agent)) || strings.Contains(pack, "-linux-") && !strings.Contains(pack, "-linux-"+npm) || strings.Contains(pack, "{")) {
					t.Errorf("package of %s on %s: got %s, want version %s for %s",
						agent, arch, pack, Version(agent), npm)
				}
			}
		}
	}
	if _, err := layersFor(seen{arch: "amd64"}, Want{Agent: "nobody"}); err == nil ||
		!strings.Contains(err.Error(), "gemini, tools") {
		t.Errorf("unknown agent: got error %v, want one with %q", err, "gemini, tools")
	}
}

// oneMachine matches what restricts a build context to one architecture.
var oneMachine = regexp.MustCompile(`\b(amd64|x86_64|x64|arm64|aarch64)\b`)

// checkEmbedded checks that a Dockerfile extends its parent and names no host, because the tools'
// defaults name the hosts.
func checkEmbedded(t *testing.T, r recipe) {
	t.Helper()
	for _, f := range r.files {
		if strings.Contains(string(f.data), "://") {
			t.Errorf("%s of %s: got a URL, want no host", f.name, r.name)
		}
		if word := oneMachine.FindString(string(f.data)); word != "" {
			t.Errorf("%s of %s: got the architecture %s, want none", f.name, r.name, word)
		}
		if f.name != dockerfileName {
			continue
		}
		if err := checkDockerfile(string(f.data)); err != nil {
			t.Errorf("Dockerfile of %s: got error %v, want none", r.name, err)
		}
		if r.stage && !strings.Contains(string(f.data), "LABEL "+labelStage+"=") {
			t.Errorf("download stage of %s: got no label %s, want one for its removal", r.name, labelStage)
		}
	}
}
