package phase

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// counterImage returns an image of the counter that declares a volume, like databases do.
func counterImage(p *lab.Project) string {
	p.Helper()
	image := "abl-test-db:" + strings.ToLower(strings.ReplaceAll(p.Name(), "/", "-"))
	q := *p
	q.Dir = p.TempDir()
	q.Write("db.mjs", lab.File(p.TB, "apps/counting-database.mjs"))
	q.Write("Dockerfile", "FROM "+toolsImage(p)+"\nCOPY db.mjs /db.mjs\nRUN mkdir /data\nVOLUME /data\n"+
		"CMD [\"node\", \"/db.mjs\"]\n")
	docker(p, "build", "-q", "--label", "abl.project=test-phase", "-t", image, q.Dir)
	p.Cleanup(func() { docker(p, "rmi", "-f", image) })
	return image
}

// Services are additional containers on the app's network, and next to the Builder. They are new
// and seeded for every call, and each environment goes to its container.
func TestServices(t *testing.T) {
	p := newProject(t, "")
	image := counterImage(p)
	p.Write(".abl/config.yaml", scripted+`
network: {allow: [registry.example]} # so that the Builder has a gateway, on a network of its own
app:
  command: node server.mjs
  port: 3000
  ready: {path: /ready}
  env: {FLAVOUR: sweet}
  services:
    db: {image: "`+image+`", env: {MOTTO: hello}, files: {/data/seed.txt: .abl/seed.txt}, ready: {port: 4000}}
`)
	ask, tries := must(0, lab.File(t, "steps/asks-the-app-twice.sh")), must(0, lab.File(t, "steps/asks-the-database.sh"))
	first := call("verifier", 1, ask, write("run.sh", suite, "0755"), refute("nothing"), report())
	p.Write(".abl/seed.txt", "seeded\n")
	script(p, builds(write("server.mjs", lab.File(t, "apps/asks-the-database.mjs")), tries, tries), first, verifies(ask))
	r := p.Must(0, "phase", "1", "--dry-run")
	wants(t, "the dry run", r.Stdout, "service db: "+image+", port 4000\n", "-net-builder, abl-", "-net-trial\n",
		"`db`, port 4000", "FLAVOUR=sweet")
	lacks(t, "the dry run", r.Stdout, "hello")
	r = p.Must(0, "doctor")
	wants(t, "doctor", r.Stdout, "service    db: "+image+" responds at port 4000, ")
	checkNothingLeft(p)
	p.Must(0, "phase", "1")
	// The probe of the service is its first visitor, and the two questions are the next.
	for _, key := range []string{"p1-verify-1.1", "p1-verify-2.1"} {
		out := printed(p, key)
		wants(t, key, out, "ok hello 2 none seeded sweet none\nok hello 3 none seeded sweet none\n")
	}
	for _, key := range []string{"p1-build-1.1", "p1-build-2.1"} {
		out := printed(p, key)
		wants(t, key, out, "trial hello 2 none seeded undefined\n", "trial hello 3 none seeded undefined\n")
	}
	checkNothingLeft(p)

	p.Write(".env", "GEMINI_API_KEY=a-secret-of-the-user\n")
	p.Write(".abl/config.yaml", scripted+"app: {command: x, port: 1, env: {TOKEN: a-secret-of-the-user}}\n")
	r = p.Must(2, "phase", "1", "--again")
	wants(t, "the refusal", r.Stderr, "app.env.TOKEN", "GEMINI_API_KEY", "config.yaml:")
	lacks(t, "the refusal", r.Stderr+r.Stdout, "a-secret-of-the-user")

	p.Write(".abl/config.yaml", scripted+"app: {command: node server.mjs, port: 3000, services: {db: {image: "+
		"\"abl-test-none:1\", ready: {port: 1}}}}\n")
	p.Write(".abl/specs/phase1.md", oneSpec+"\nMore words, so that the phase opens again.\n")
	r = p.Must(7, "phase", "1")
	wants(t, "a missing image", r.Stderr, "service \"db\"", "abl-test-none:1")
	checkNothingLeft(p)
}

// A Builder that continues after abl is killed keeps its services, which end with it.
func TestServicesSurviveKill(t *testing.T) {
	lab.Long(t)
	p := newProject(t, "")
	image := counterImage(p)
	p.Write(".abl/seed.txt", "seeded\n")
	p.Write(".abl/config.yaml", scripted+"app: {command: node server.mjs, port: 3000, services: {db: {image: \""+image+"\", env: {MOTTO: hello}, files: {/data/seed.txt: .abl/seed.txt}, ready: {port: 4000}}}}\n")
	tries := must(0, lab.File(t, "steps/asks-the-database.sh"))
	script(p, builds(write("server.mjs", server), tries, must(0, "until test -e go; do sleep 0.02; done"), tries),
		verifies())
	r := watch(p, func(e state.Event, abl *os.Process) {
		if e.Kind == state.Action && strings.Contains(e.Text, "until test") {
			_ = abl.Kill()
		}
	}, "phase", "1")
	if r.Code != -1 {
		t.Fatalf("got exit %d, want a kill: %s", r.Code, r.Stderr)
	}
	resumed := ""
	r = watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind == state.CallResume {
			resumed = e.Call
			p.Write("src/go", "")
		}
	}, "phase", "1")
	if r.Code != 0 || resumed != "p1-build-1.1" {
		t.Errorf("got exit %d, resumed %q, want 0, p1-build-1.1\n%s", r.Code, resumed, r.Stderr)
	}
	wants(t, "the Builder", printed(p, "p1-build-1.1"), "trial hello 2 none seeded", "trial hello 3 none seeded")
	checkNothingLeft(p)
}

// recipe returns the settings of a section of docs/services.md, and writes its files.
func recipe(p *lab.Project, title string) (settings string) {
	p.Helper()
	page, err := os.ReadFile("../../docs/services.md")
	if err != nil {
		p.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "\n## "+title+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```\\w+(?: (\\S+))?\n(.*?)```").FindAllStringSubmatch(section, -1) {
		if block[1] == "" {
			settings += block[2]
		} else {
			p.Write(block[1], block[2])
		}
	}
	if !found || settings == "" {
		p.Fatalf("docs/services.md: got no recipe for %s, want one", title)
	}
	return settings
}

// TestDocsServices runs the recipes of docs/services.md with an app that uses each service. The
// Builder, the Verifier and every replay find the service as it was seeded.
func TestDocsServices(t *testing.T) {
	lab.Long(t)
	const visit = "INSERT INTO visits (who) VALUES ('me'); SELECT count(*) FROM visits"
	sql := func(client string) string {
		return strings.Replace(lab.File(t, "apps/sql-visits.mjs"), "CLIENT", client, 1)
	}
	for _, c := range []struct {
		title, app, tries string
		visits            string // count of the first visitor after the start
		soak              bool
	}{
		{"Redis", lab.File(t, "apps/redis-visits.mjs"), lab.File(t, "steps/visits-redis.sh"), "1", false},
		{
			"PostgreSQL",
			sql(`psql -qAt -c "` + visit + `" $DATABASE_URL`),
			`psql -qAt -c "` + visit + `" postgres://app:for-tests-only@db/app`,
			"2",
			true,
		},
		{
			"MySQL and MariaDB",
			sql(`mariadb -N -h $DB_HOST -u $DB_USER -p$DB_PASSWORD -e "` + visit + `" $DB_NAME`),
			`mariadb -N -h db -u app -pfor-tests-only -e "` + visit + `" app`,
			"2",
			true,
		},
	} {
		t.Run(strings.ReplaceAll(c.title, " ", "-"), func(t *testing.T) {
			if c.soak && os.Getenv("ABL_SOAK") == "" {
				t.Skip("only with ABL_SOAK")
			}
			p := newProject(t, "")
			settings := strings.Replace(scripted, unproven, "verify: {strength_time: 0}\n", 1) +
				"network: {builds: host}\n" + recipe(p, c.title)
			if c.soak { // a large image, which is removed; the roles use its client
				label := "docs-" + strings.Fields(c.title)[0]
				t.Cleanup(func() { dropImages(t, label) })
				p.Write(".abl/images/db/Dockerfile", p.Read(".abl/images/db/Dockerfile")+"LABEL abl.test="+label+"\n")
				settings += "images: {builder: {dockerfile: .abl/images/db/Dockerfile}, app: {dockerfile: " +
					".abl/images/db/Dockerfile}}\n"
			}
			p.Write(".abl/config.yaml", settings)
			tests := strings.Replace(suite, "curl -sf \"$ABL_APP_URL/\" >/dev/null",
				"curl -sf \"$ABL_APP_URL/\" | grep -qx 'ok "+c.visits+".\\?'", 1)
			script(p, builds(write("server.mjs", c.app), must(0, c.tries)),
				verifies(write("run.sh", tests, "0755"), run(lab.File(t, "steps/asks-the-app-twice.sh"))))
			r := p.Must(0, "phase", "1", "--json")
			if n := len(of(events(t, r), state.Verdict)); n != 1 {
				t.Errorf("verdicts: got %d, want 1", n)
			}
			wants(t, "the Builder", printed(p, "p1-build-1.1"), c.visits)
			wants(t, "the Verifier", printed(p, "p1-verify-1.1"), "ok "+c.visits)
			wants(t, "doctor", p.Must(0, "doctor").Stdout, "/Dockerfile responds at port ")
			checkNothingLeft(p)
		})
	}
}
