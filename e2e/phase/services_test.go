package phase

import (
	"strings"
	"testing"
)

// Services are further containers on the app's network, and beside the Builder, fresh for every
// call and seeded, and each environment goes where it belongs.
func TestServices(t *testing.T) {
	const counter = `import net from 'node:net';
import fs from 'node:fs';
const seed = fs.readFileSync('/data/seed.txt', 'utf8').trim();
fs.appendFileSync('/data/seed.txt', ' again');
let seen = 0;
net.createServer((c) => { seen++; c.on('error', () => {}); c.on('data', () => c.end(process.env.MOTTO + ' ' + seen + ' ' + (process.env.FLAVOUR ?? 'none') + ' ' + seed)); }).listen(4000);
`
	const asks = `import http from 'node:http';
import net from 'node:net';
http.createServer((req, res) => {
  if (req.url === '/ready') return res.end('ready');
  const c = net.connect(4000, 'db', () => c.write('x'));
  c.on('data', (d) => res.end('ok ' + d + ' ' + process.env.FLAVOUR + ' ' + (process.env.MOTTO ?? 'none')));
  c.on('error', (e) => { res.statusCode = 502; res.end(e.code); });
}).listen(3000, '0.0.0.0');
`
	p := newProject(t, "")
	image := "abl-test-db:" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))
	ctx := t.TempDir()
	q := *p
	q.Dir = ctx
	q.Write("db.mjs", counter)
	q.Write("Dockerfile", "FROM "+toolsImage(p)+"\nCOPY db.mjs /db.mjs\nRUN mkdir /data\nVOLUME /data\nCMD [\"node\", \"/db.mjs\"]\n")
	docker(t, "build", "-q", "--label", "abl.project=test-phase", "-t", image, ctx)
	t.Cleanup(func() { docker(t, "rmi", "-f", image) })
	p.Write(".abl/config.yaml", scripted+`
app:
  command: node server.mjs
  port: 3000
  ready: {path: /ready}
  env: {FLAVOUR: sweet}
  services:
    db: {image: "`+image+`", env: {MOTTO: hello}, files: {/data/seed.txt: .abl/seed.txt}, ready: {port: 4000}}
`)
	ask := must(0, "curl -s http://app:3000/; echo; curl -s http://app:3000/; echo")
	first := call("verifier", 1, ask, write("run.sh", suite, "0755"), refute("nothing"), report())
	p.Write(".abl/seed.txt", "seeded\n")
	const tries = `node -e "require('net').connect(4000, 'db', function () { this.write('x') }).on('data', (d) => console.log('trial ' + d + ' ' + process.env.FLAVOUR))"`
	script(p, builds(write("server.mjs", asks), must(0, tries), must(0, tries)), first, verifies(ask))
	r := p.Must(0, "phase", "1", "--dry-run")
	wants(t, "the dry run", r.Stdout, "service db: "+image+", port 4000\n", "networks: abl-", "-net-trial\n", "`db`, port 4000", "FLAVOUR=sweet")
	lacks(t, "the dry run", r.Stdout, "hello")
	r = p.Must(0, "doctor")
	wants(t, "doctor", r.Stdout, "service    db: "+image+" answers at port 4000, ")
	noLeftovers(p)
	p.Must(0, "phase", "1")
	// The probe of the service is its first visitor; the two questions follow.
	for _, key := range []string{"p1-verify-1.1", "p1-verify-2.1"} {
		out := printed(p, key)
		wants(t, key, out, "ok hello 2 none seeded sweet none\nok hello 3 none seeded sweet none\n")
	}
	for _, key := range []string{"p1-build-1.1", "p1-build-2.1"} {
		out := printed(p, key)
		wants(t, key, out, "trial hello 2 none seeded undefined\n", "trial hello 3 none seeded undefined\n")
	}
	noLeftovers(p)

	p.Write(".env", "GEMINI_API_KEY=a-secret-of-the-person\n")
	p.Write(".abl/config.yaml", scripted+"app: {command: x, port: 1, env: {TOKEN: a-secret-of-the-person}}\n")
	r = p.Must(2, "phase", "1", "--again")
	wants(t, "the refusal", r.Stderr, "app.env.TOKEN", "GEMINI_API_KEY", "config.yaml:")
	lacks(t, "the refusal", r.Stderr+r.Stdout, "a-secret-of-the-person")

	p.Write(".abl/config.yaml", scripted+"app: {command: node server.mjs, port: 3000, services: {db: {image: \"abl-test-none:1\", ready: {port: 1}}}}\n")
	p.Write(".abl/specs/phase1.md", oneSpec+"\nMore words, so that the phase opens again.\n")
	r = p.Must(7, "phase", "1")
	wants(t, "a missing image", r.Stderr, "service \"db\"", "abl-test-none:1")
	noLeftovers(p)
}
