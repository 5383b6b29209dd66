package phase

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

// registryAt is a registry on a network of the engine, which is the gateways' egress.
type registryAt struct {
	t                  *testing.T
	network, container string
	ip                 string
	cert               []byte
}

// documentation lists address ranges that belong to nobody, so that the gateway treats them as
// public. Private ranges belong to other networks.
const (
	documentation = "198.51.100.%d/28"
	private       = "10.221.7.%d/28"
)

// openRegistry starts a registry on a network of this range.
func openRegistry(t *testing.T, p *lab.Project, subnet string) *registryAt {
	t.Helper()
	name := fmt.Sprintf("abl-test-registry-%d", time.Now().UnixNano())
	r := &registryAt{t: t, network: name, container: name}
	site := t.TempDir()
	key, cert := certificate(t, "registry.example", "other.example")
	r.cert = cert
	files := map[string][]byte{
		"key.pem": key, "cert.pem": cert, "tiny.tgz": tiny(t),
		"server.mjs": []byte(lab.File(t, "apps/npm-registry.mjs")),
	}
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(site, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = exec.Command("docker", "rm", "-f", r.container).Run() // it may not have started
		if out, err := exec.Command("docker", "network", "rm", r.network).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	var last error
	for at := 0; at < 256; at += 16 { // another test may use a range
		var out []byte
		out, last = exec.Command("docker", "network", "create", "--label", "abl.test=registry", "--subnet",
			fmt.Sprintf(subnet, at), r.network).CombinedOutput()
		if last == nil {
			break
		}
		last = fmt.Errorf("%w: %s", last, out)
	}
	if last != nil {
		t.Fatal(last)
	}
	docker(t, "run", "-d", "--name", r.container, "--label", "abl.test=registry", "--network", r.network,
		"--network-alias", "registry.example", "--network-alias", "other.example", "-v", site+":/site:ro", toolsImage(p), "node", "/site/server.mjs")
	for !strings.Contains(r.asked(), "listens") {
		if docker(t, "inspect", "-f", "{{.State.Running}}", r.container) != "true" {
			t.Fatalf("the registry does not run: %s", docker(t, "logs", r.container))
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.ip = docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", r.container)
	return r
}

// asked returns the requests to the registry.
func (r *registryAt) asked() string {
	r.t.Helper()
	return docker(r.t, "logs", r.container)
}

// certificate returns a self-signed certificate.
func certificate(t *testing.T, names ...string) (key, cert []byte) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		DNSNames:              names,
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, pair.Public(), pair)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// tiny returns the package in npm's format.
func tiny(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for name, text := range map[string]string{
		"package/package.json": `{"name": "tiny", "version": "1.0.0"}`,
		"package/index.js":     "module.exports = 'tiny indeed';\n",
	} {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// notes returns the texts of a run's notes.
func notes(t *testing.T, r lab.Result) string {
	t.Helper()
	var all []string
	for _, e := range of(events(t, r), state.Note) {
		all = append(all, e.Text)
	}
	return strings.Join(all, "\n") + "\n"
}

// A project opens the route to a registry step by step. By default there is no gateway, and no
// container reaches the registry. A host that the user allows is refused if its address is
// private. Then the Builder's npm installs a package from the allowed mirror and reaches no other
// host. abl reports a refused host with the line to add to the configuration.
func TestRegistryEgress(t *testing.T) {
	p := newProject(t, "")
	r := openRegistry(t, p, documentation)
	p.Write(".abl/ca.pem", string(r.cert))
	noRegistryByDefault(t, p, r)
	if testing.Short() {
		return
	}
	privateRegistryIsRefused(t, p)
	registryIsReached(t, p, r)
	learnerFetches(p, r)
}

// The Builder reaches a mirror at a private address only if the entry of network.allow has
// private: true, and other hosts there are refused.
func TestPrivateMirror(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	r := openRegistry(t, p, private)
	script(p, refusedAfter(run("curl -sS -k https://registry.example/private-mirror; curl -sS -k "+
		"https://other.example/private-other")))
	p.Write(".abl/config.yaml", scripted+nodeApp+"network: {allow: [{host: registry.example, private: true}, "+
		"other.example], egress: "+r.network+"}\n")
	text := notes(t, p.Must(5, "phase", "1", "--json"))
	wants(t, "the registry's log", r.asked(), "GET registry.example/private-mirror")
	lacks(t, "the registry's log", r.asked(), "private-other")
	wants(t, "the notes", text, `the gateway refused other.example:443: its address is not public; if you trust it, add {host: "other.example:443", private: true} to network.allow`+"\n")
	lacks(t, "the notes", text, "refused registry.example")
	checkNothingLeft(p)
}

// refusedAfter returns a Builder's call with these steps. Then the provider refuses its key,
// which ends the run without a Verifier.
func refusedAfter(steps ...agent.Step) agent.ScriptCall {
	c := builds(steps...)
	c.End = agent.EndLogin
	return c
}

func noRegistryByDefault(t *testing.T, p *lab.Project, r *registryAt) {
	t.Helper()
	asks := strings.ReplaceAll(lab.File(t, "steps/asks-the-registry-directly.sh"), "ADDRESS", r.ip)
	script(p, refusedAfter(run(asks), run("env | grep -i proxy")))
	p.Write(".abl/config.yaml", scripted+nodeApp+"network: {egress: "+r.network+"}\n")
	p.Must(5, "phase", "1", "--json")
	lacks(t, "the registry's log", r.asked(), "direct")
	lacks(t, "the Builder's environment", printed(p, "p1-build-1.1"), "PROXY=", "proxy=")
	if p.Exists(".abl/logs/calls/p1-build-1.1/gateway.jsonl") {
		t.Error("the gateway's log: got a file, want none")
	}
	checkNothingLeft(p)
}

func privateRegistryIsRefused(t *testing.T, p *lab.Project) {
	t.Helper()
	r := openRegistry(t, p, private)
	script(p, refusedAfter(run("curl -sS -k https://registry.example/private")))
	p.Write(".abl/config.yaml", scripted+nodeApp+"network: {allow: [registry.example], egress: "+r.network+"}\n")
	text := notes(t, p.Must(5, "phase", "1", "--json"))
	wants(t, "the Builder's output", printed(p, "p1-build-1.2"), "response 403")
	lacks(t, "the registry's log", r.asked(), "private")
	wants(t, "the notes", text, "the gateway refused registry.example:443: its address is not public; "+
		"if you trust it, add {host: \"registry.example:443\", private: true} to network.allow\n")
	lacks(t, "the notes", text, "network: {allow:")
	checkNothingLeft(p)
}

func registryIsReached(t *testing.T, p *lab.Project, r *registryAt) {
	t.Helper()
	t.Cleanup(func() { dropImages(t, "registry-egress") })
	script(p, builds(
		write("server.mjs", server),
		write(".npmrc", "fetch-retries=0\n"),
		must(0, "npm install tiny"), must(0, "node -p 'require(\"tiny\")'"),
		run("curl -sS https://other.example/listed-nowhere"), run("curl -sS https://other.example/listed-nowhere"),
		run("curl -sS http://registry.example/plain"),
		run(strings.ReplaceAll(lab.File(t, "steps/asks-the-registry-directly.sh"), "ADDRESS", r.ip)),
	), verifies(
		run("curl -sS -k --max-time 5 https://registry.example/verifier"), run("env | grep -i proxy"),
	))
	p.Write(".abl/images/builder.Dockerfile",
		"ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nLABEL abl.test=registry-egress\n"+
			"ENV npm_config_registry=https://registry.example/\n")
	p.Write(".abl/config.yaml", replacing(scripted,
		"loop: {call_timeout: 5m}\n")+nodeApp+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n"+
		"network: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n")

	run := p.Must(0, "phase", "1", "--json")
	wants(t, "the Builder's output", printed(p, "p1-build-1.3"), "tiny indeed", "response 403")
	wants(t, "the registry's log", r.asked(), "GET registry.example/tiny\n", "GET registry.example/tiny/-/tiny-1.0.0.tgz")
	lacks(t, "the registry's log", r.asked(), "nowhere", "plain", "direct", "verifier")
	wants(t, "the notes", notes(t, run),
		"the gateway refused other.example:443, 2 times\n", "the gateway refused registry.example:80: plain http; "+
			"only https is allowed\n",
		"add to .abl/config.yaml: network: {allow: [other.example:443]}\n")
	lacks(t, "the Verifier's environment", printed(p, "p1-verify-1.1"), "PROXY=", "proxy=")
	checkNothingLeft(p)
}

// learnerFetches runs the learner with the same registry. Its author reaches the registry, but its
// reviewer and its program do not.
func learnerFetches(p *lab.Project, r *registryAt) {
	p.Helper()
	p.Write("learn.yaml", strings.ReplaceAll(lab.File(p.TB, "learn-fetches.yaml"), "ADDRESS", r.ip))
	p.Write(".abl/config.yaml", "version: 1\nnetwork: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n")
	l := learn(p, 0, "fetch something", "--agent", "scripted", "--scenario", "learn.yaml", "--cycles", "1")
	wants(p.TB, "the registry's log", r.asked(), "GET registry.example/author-learns")
	lacks(p.TB, "the registry's log", r.asked(), "program-runs", "reviewer-looks")
	lacks(p.TB, "the program's environment", l.Cycles[0].Ran.Output, "PROXY=", "proxy=")
	wants(p.TB, "the author's prompt", p.Read(l.Project+"/cycle-1/prompt.txt"), "you can reach registry.example:443")
}

// dropImages removes the images that a test built, by their label.
func dropImages(t *testing.T, label string) {
	t.Helper()
	// An image can only be removed after the images that are based on it, so some need another
	// round.
	for range 4 {
		for _, image := range strings.Fields(docker(t, "images", "-aq", "--filter", "label=abl.test="+label)) {
			_ = exec.Command("docker", "rmi", "-f", image).Run()
		}
	}
	if left := docker(t, "images", "-aq", "--filter", "label=abl.test="+label); left != "" {
		t.Errorf("images left: got %s, want none", left)
	}
}
