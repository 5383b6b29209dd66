package phase

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/lab"
)

// A service and a stage of the project's Dockerfile come from a registry that requires a login.
// abl uses the login of the user's Docker config, and BuildKit for the Dockerfile. If one is
// missing, abl prints what to do.
func TestPrivateRegistryAndBuildKit(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	lab.Egress(t)
	r := lab.NewRegistry(t, "me", "my-password")
	t.Cleanup(func() { dropImages(t, "buildkit") })
	service := r.Add("team/db", map[string][]byte{"listens": compiled(t, "listens")}, "/listens")
	t.Cleanup(func() { _ = exec.Command("docker", "rmi", "-f", service).Run() })
	notes := r.Add("team/notes", map[string][]byte{"note": []byte("from the registry\n")})
	app := lab.File(t, "app-with-a-service.yaml") + fmt.Sprintf("  services: {db: {image: %q, ready: {port: 4000}}}\n",
		service)
	dockerfile := strings.NewReplacer("REFERENCE", notes, "NONCE", fmt.Sprint(time.Now().UnixNano())).
		Replace(lab.File(t, "buildkit.Dockerfile"))
	p.Write(".abl/images/builder.Dockerfile", dockerfile)
	script(p, builds(write("server.mjs", server), run("cat /etc/note /etc/architecture")), verifies())

	p.Write(".abl/config.yaml", scripted+app)
	wants(t, "a service without a login", p.Must(7, "phase", "1").Stderr, "run `docker login "+r.Host+"`")
	p.Write(".abl/config.yaml", scripted+app+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n")
	wants(t, "a build without a login", p.Must(7, "phase", "1").Stderr, "docker login HOST")

	config := t.TempDir()
	auth := base64.StdEncoding.EncodeToString([]byte("me:my-password"))
	if err := os.WriteFile(filepath.Join(config, "config.json"), fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`,
		r.Host, auth), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "DOCKER_CONFIG="+config, "DOCKER_BUILDKIT=0")
	wants(t, "the classic builder", p.Must(2, "phase", "1").Stderr, "the builder's image",
		"line 3: ARG TARGETARCH needs BuildKit")
	p.Env[len(p.Env)-1] = "DOCKER_BUILDKIT=1"
	p.Must(0, "phase", "1")
	wants(t, "the Builder's container", printed(p, "p1-build-1.1"), "from the registry\nfor "+runtime.GOARCH+" ")
	if served, denied := r.Served(); denied == 0 || !strings.Contains(strings.Join(served, " "), "team/db:1") {
		t.Errorf("the registry: got %q served and %d requests denied, want team/db:1 and 1 or more", served, denied)
	}
	checkNothingLeft(p)
}

// compiled compiles a program of testdata for a container.
func compiled(t *testing.T, name string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", file, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
