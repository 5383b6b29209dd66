package phase

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// postgres is an image with Debian's, since not every machine reaches a registry of images.
// It is kept: making it takes half a minute.
func postgres(p *lab.Project) string {
	p.Helper()
	const image = "abl-test/postgres:15"
	dir := p.TempDir()
	tools := "" // without the helper, which changes often
	for line := range strings.Lines(p.Must(0, "images", "list").Stdout) {
		if f := strings.Fields(line); f[0] == "tools" {
			tools = f[2]
		}
	}
	text := "FROM " + tools + `
RUN apt-get update && apt-get install -y --no-install-recommends postgresql-15 && rm -rf /var/lib/apt/lists/* && install -d -o postgres /data
USER postgres
RUN echo for-tests-only > /tmp/password && /usr/lib/postgresql/15/bin/initdb -D /data/15 -U postgres --auth=scram-sha-256 --pwfile=/tmp/password \
 && echo host all all all scram-sha-256 >> /data/15/pg_hba.conf
CMD ["/usr/lib/postgresql/15/bin/postgres", "-D", "/data/15", "-c", "listen_addresses=*"]
`
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
	docker(p, "build", "-q", "--network", "host", "-t", image, dir)
	return image
}

// The small projects of examples/ pass, each with a toolchain of its own, which the
// Verifier's image has no part of. Their images need the registries, and the first its
// module, too.
func TestExamples(t *testing.T) {
	for _, tt := range []struct{ name, image, built string }{
		{"go-module", "abl/run-go-1.27", "downloading github.com/google/uuid"},
		{"flask", "abl/run-project:", "Ran 1 test"},
		{"express-postgres", "abl/run-node-24", "added "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if turn(t); tt.name != "flask" {
				lab.WayOut(t)
			}
			p := lab.From(t, os.DirFS("../../examples/"+tt.name))
			p.Env = append(p.Env, "ABL_VERIFY_STRENGTH_TIME=0", "ABL_NETWORK_CA_CERT="+os.Getenv("SSL_CERT_FILE"))
			if tt.name == "express-postgres" {
				p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "postgres:17", postgres(p), 1))
			}
			r := p.Must(0, "phase", "1", "--json")
			if got := verdicts(events(t, r)); got != "pass" {
				t.Errorf("verdicts %q", got)
			}
			wants(t, "the Builder", printed(p, "p1-build-1.1"), tt.built)
			wants(t, "the Builder's image", p.Read(".abl/logs/calls/p1-build-1.1/intent.json"), tt.image)
			wants(t, "the Verifier's image", p.Read(".abl/logs/calls/p1-verify-1.1/intent.json"), "abl/run-tools:")
			noLeftovers(p)
		})
	}
}
