package phase

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
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
)

// registryServer is a package registry for npm with one package, at names that
// only its network knows. It prints what it is asked for.
const registryServer = `import https from 'node:https';
import fs from 'node:fs';
const file = (name) => fs.readFileSync('/site/' + name);
const about = {name: 'tiny', 'dist-tags': {latest: '1.0.0'}, versions: {'1.0.0': {
  name: 'tiny', version: '1.0.0', dist: {tarball: 'https://registry.example/tiny/-/tiny-1.0.0.tgz'}}}};
https.createServer({key: file('key.pem'), cert: file('cert.pem')}, (req, res) => {
  console.log(req.method, req.headers.host + req.url);
  if (req.url === '/tiny') return res.end(JSON.stringify(about));
  if (req.url === '/tiny/-/tiny-1.0.0.tgz') return res.end(file('tiny.tgz'));
  res.writeHead(404).end('{}');
}).listen(443, () => console.log('listens'));
`

// registryAt is a registry on a network of the engine's, which is the gateways' way out.
type registryAt struct {
	t            *testing.T
	network, box string
	ip           string
	cert         []byte
}

// documentation are ranges that are nobody's, so that the gateway takes them for
// the internet's; private ones are somebody's.
const (
	documentation = "198.51.100.%d/28"
	private       = "10.221.7.%d/28"
)

// openRegistry starts one on a network of this range.
func openRegistry(t *testing.T, p *lab.Project, subnet string) *registryAt {
	t.Helper()
	name := fmt.Sprintf("abl-test-registry-%d", time.Now().UnixNano())
	r := &registryAt{t: t, network: name, box: name}
	site := t.TempDir()
	key, cert := certificate(t, "registry.example", "other.example")
	r.cert = cert
	for file, data := range map[string][]byte{"key.pem": key, "cert.pem": cert, "tiny.tgz": tiny(t), "server.mjs": []byte(registryServer)} {
		if err := os.WriteFile(filepath.Join(site, file), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = exec.Command("docker", "rm", "-f", r.box).Run() // it may never have begun
		if out, err := exec.Command("docker", "network", "rm", r.network).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	var last error
	for at := 0; at < 256; at += 16 { // another test may have a range
		var out []byte
		out, last = exec.Command("docker", "network", "create", "--label", "abl.test=registry", "--subnet", fmt.Sprintf(subnet, at), r.network).CombinedOutput()
		if last == nil {
			break
		}
		last = fmt.Errorf("%w: %s", last, out)
	}
	if last != nil {
		t.Fatal(last)
	}
	docker(t, "run", "-d", "--name", r.box, "--label", "abl.test=registry", "--network", r.network,
		"--network-alias", "registry.example", "--network-alias", "other.example", "-v", site+":/site:ro", toolsImage(p), "node", "/site/server.mjs")
	for !strings.Contains(r.asked(), "listens") {
		if docker(t, "inspect", "-f", "{{.State.Running}}", r.box) != "true" {
			t.Fatalf("the registry does not run: %s", docker(t, "logs", r.box))
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.ip = docker(t, "inspect", "-f", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", r.box)
	return r
}

// asked is what the registry was asked for.
func (r *registryAt) asked() string {
	r.t.Helper()
	return docker(r.t, "logs", r.box)
}

// certificate is one that trusts itself.
func certificate(t *testing.T, names ...string) (key, cert []byte) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, pair.Public(), pair)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// tiny is the package as npm packs it.
func tiny(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	files := tar.NewWriter(zip)
	for name, text := range map[string]string{"package/package.json": `{"name": "tiny", "version": "1.0.0"}`, "package/index.js": "module.exports = 'tiny indeed';\n"} {
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

// notes are what a run told the person.
func notes(t *testing.T, r lab.Result) string {
	t.Helper()
	var all []string
	for _, e := range of(events(t, r), state.Note) {
		all = append(all, e.Text)
	}
	return strings.Join(all, "\n") + "\n"
}

// The Builder's npm gets a package from the mirror that the person allows, and
// comes to no other host; what it missed the person is told, with the line to add.
func TestRegistryEgress(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	t.Cleanup(func() { dropImages(t, "registry-egress") })
	r := openRegistry(t, p, documentation)
	script(p, builds(
		write("server.mjs", server),
		write(".npmrc", "fetch-retries=0\n"),
		must(0, "npm install tiny && node -p 'require(\"tiny\")'"),
		run("curl -sS https://other.example/listed-nowhere; curl -sS https://other.example/listed-nowhere; true"),
		run("curl -sS http://registry.example/plain; true"),
		run("curl -sS --noproxy '*' -k --max-time 5 https://registry.example/direct; curl -sS -k --max-time 5 -x '' https://"+r.ip+"/direct; true"),
	), verifies(
		run("curl -sS -k --max-time 5 https://registry.example/verifier; env | grep -i proxy; true"),
	))
	p.Write(".abl/ca.pem", string(r.cert))
	p.Write(".abl/images/builder.Dockerfile", "ARG ABL_IMAGE\nFROM ${ABL_IMAGE}\nLABEL abl.test=registry-egress\nENV npm_config_registry=https://registry.example/\n")
	p.Write(".abl/config.yaml", scripted+nodeApp+"images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}\n"+
		"network: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n")

	run := p.Must(0, "phase", "1", "--json")
	wants(t, "what the Builder saw", printed(p, "p1-build-1.1"), "tiny indeed", "response 403")
	wants(t, "what the registry was asked", r.asked(), "GET registry.example/tiny\n", "GET registry.example/tiny/-/tiny-1.0.0.tgz")
	lacks(t, "what the registry was asked", r.asked(), "nowhere", "plain", "direct", "verifier")
	wants(t, "the notes", notes(t, run),
		"the gateway refused other.example:443, 2 times\n", "the gateway refused registry.example:80: plain http; only https passes\n",
		"add to .abl/config.yaml: network: {allow: [other.example:443]}\n")
	lacks(t, "what the Verifier has", printed(p, "p1-verify-1.1"), "PROXY=", "proxy=")
	noLeftovers(p)
	learnerFetches(p, r)
}

// learnerFetches has the learner's author come to the same registry, while neither
// its reviewer nor its program does.
func learnerFetches(p *lab.Project, r *registryAt) {
	p.Write("learn.yaml", `version: 1
calls:
  - role: generate
    steps:
      - run: "curl -sS -k https://registry.example/author-learns; true"
      - write: run.sh
        text: "curl -sS -k --max-time 3 https://registry.example/program-runs; curl -sS -k --max-time 3 https://`+r.ip+`/program-runs; env | grep -i proxy; true\n"
  - role: review
    steps:
      - run: "curl -sS -k --max-time 3 https://registry.example/reviewer-looks; true"
      - say: "TESTS: none"
  - role: learnings
    steps: [{say: NONE}]
  - role: mistakes
    steps: [{say: NONE}]
  - role: improve
    steps: [{say: "Fetch what you need."}]
`)
	p.Write(".abl/config.yaml", "version: 1\nnetwork: {allow: [registry.example], egress: "+r.network+", ca_cert: .abl/ca.pem}\n")
	l := learn(p, 0, "fetch something", "--agent", "scripted", "--scenario", "learn.yaml", "--cycles", "1")
	wants(p.TB, "what the registry was asked", r.asked(), "GET registry.example/author-learns")
	lacks(p.TB, "what the registry was asked", r.asked(), "program-runs", "reviewer-looks")
	lacks(p.TB, "what the program has", l.Cycles[0].Ran.Output, "PROXY=", "proxy=")
	wants(p.TB, "what the author is told", p.Read(l.Project+"/cycle-1/prompt.txt"), "you can reach registry.example:443")
}

// A host that the person allows is refused all the same when its address is private.
func TestPrivateRegistryIsRefused(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "", builds(write("server.mjs", server), run("curl -sS -k https://registry.example/private; true")), verifies())
	r := openRegistry(t, p, private)
	p.Write(".abl/config.yaml", scripted+nodeApp+"network: {allow: [registry.example], egress: "+r.network+"}\n")
	run := p.Must(0, "phase", "1", "--json")
	wants(t, "what the Builder saw", printed(p, "p1-build-1.1"), "response 403")
	lacks(t, "what the registry was asked", r.asked(), "private")
	wants(t, "the notes", notes(t, run), "the gateway refused registry.example:443: it has no public address, and no other passes\n")
	lacks(t, "the notes", notes(t, run), "network: {allow:")
	noLeftovers(p)
}

// With nothing allowed there is no gateway, and nothing to be reached.
func TestNoRegistryByDefault(t *testing.T) {
	p := newProject(t, "")
	r := openRegistry(t, p, documentation)
	script(p, builds(
		write("server.mjs", server),
		run("curl -sS -k --max-time 5 https://registry.example/default; curl -sS -k --max-time 5 https://"+r.ip+"/default; env | grep -i proxy; true"),
	), verifies())
	p.Write(".abl/config.yaml", scripted+nodeApp+"network: {egress: "+r.network+"}\n")
	p.Must(0, "phase", "1", "--json")
	lacks(t, "what the registry was asked", r.asked(), "default")
	lacks(t, "what the Builder has", printed(p, "p1-build-1.1"), "PROXY=", "proxy=")
	if p.Exists(".abl/logs/calls/p1-build-1.1/gateway.jsonl") {
		t.Error("there was a gateway")
	}
	noLeftovers(p)
}

// dropImages removes what a test built, by its label.
func dropImages(t *testing.T, label string) {
	t.Helper()
	// An image goes only after those that stand on it, so some need another turn.
	for range 4 {
		for _, image := range strings.Fields(docker(t, "images", "-aq", "--filter", "label=abl.test="+label)) {
			_ = exec.Command("docker", "rmi", "-f", image).Run()
		}
	}
	if left := docker(t, "images", "-aq", "--filter", "label=abl.test="+label); left != "" {
		t.Errorf("images left: %s", left)
	}
}
