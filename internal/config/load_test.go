package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/hostfs"
	"abl/internal/yamlfile"
)

// project makes a project of the files by name.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

func TestLoadNothingIsTheDefault(t *testing.T) {
	for _, files := range []map[string]string{nil, {".abl/config.yaml": ""}, {".abl/config.yaml": "version: 1\nloop:\n"}} {
		l, err := Load(project(t, files), lookup(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Default(), l.Config); diff != "" {
			t.Errorf("settings (-want +got)\n%s", diff)
		}
	}
}

// whole is the schema with everything in it.
const whole = `version: 1
directories: {src: app, tests: .abl/tests}
agent: {builder: gemini, verifier: scripted}
models: {builder: [gemini-2.5-pro, gemini-2.5-flash], verifier: gemini-2.5-pro}
builder_commands: {health_check: {command: "npm run lint", description: "lint and types"}}
app:
  command: "npm start"
  port: 3000
  ready: {path: /health, timeout: 90s}
  env: {PORT: 3000}
  services: {db: {image: "postgres:16", env: {A: b}, ready: {port: 5432}}}
verifier_commands: {seed: {command: "npm run seed", output: shown, background: true, timeout: 1m}}
loop: {max_verifier_iterations: 3, call_timeout: 20m, idle_timeout: 5m, outage_budget: 0s, no_progress: 2}
verify: {evidence: "off", strength_time: 10m, allow_weak: [P1.C3, P2.C1]}
budget: {phase: {usd: 5, tokens: 2000000}, call: {}, project: {}}
prices: {other: {input: 1}, my-model: {input: 0.5, output: 2}}
network: {allow: [npm, registry.example, "mirror.example:8443", {host: "mirror.corp:444", private: true}, {host: plain.example}], ca_cert: .abl/ca.pem, pool: 172.20.0.0/16, egress: corp}
limits: {memory: 512m, cpus: 1.5, pids: 100, disk: 1t, inodes: 20000, output: 100k, file: 4096}
images: {builder: {dockerfile: .abl/images/builder.Dockerfile}}
agents: {scripted: {scenario: scenario.yaml}}
`

func TestLoadComplete(t *testing.T) {
	l, err := Load(project(t, map[string]string{".abl/config.yaml": whole}), lookup(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"models.builder": "gemini-2.5-pro, gemini-2.5-flash", "models.verifier": "gemini-2.5-pro",
		"app.ready.timeout": "1m30s", "app.copy": "auto", "app.services.db.ready.timeout": "1m", "app.env.PORT": "3000",
		"builder_commands.health_check.timeout": "10m", "verifier_commands.seed.timeout": "1m",
		"loop.call_timeout": "20m", "loop.outage_budget": "0s", "budget.phase.usd": "5", "prices": "my-model, other", "verify.strength_time": "10m", "verify.allow_weak": "P1.C3, P2.C1", "network.allow": "npm, registry.example, mirror.example:8443, mirror.corp:444 private, plain.example",
		"limits.memory": "512m", "limits.disk": "1t", "limits.inodes": "20000", "limits.output": "100k", "limits.file": "4k", "limits.cpus": "1.5",
	}
	values := yamlfile.Values(l.Config)
	for key, text := range want {
		if values[key] != text {
			t.Errorf("%s: got %q, want %q", key, values[key], text)
		}
	}
	if !l.NeedsPrices() {
		t.Error("prices needed for a budget in dollars: got false, want true")
	}
}

// TestMarshalledConfigLoads checks that a written configuration is the same after reading it.
func TestMarshalledConfigLoads(t *testing.T) {
	l, err := Load(project(t, map[string]string{".abl/config.yaml": whole}), lookup(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := yamlfile.Marshal(l.Config)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Load(project(t, map[string]string{".abl/config.yaml": string(data)}), lookup(nil), nil)
	if err != nil {
		t.Fatalf("settings written as\n%s\ngot error %v, want none", data, err)
	}
	if diff := cmp.Diff(yamlfile.Values(l.Config), yamlfile.Values(again.Config)); diff != "" {
		t.Errorf("settings read again (-want +got)\n%s", diff)
	}
}

// Paths of the project mean the same however they are written.
func TestPathsAreCleaned(t *testing.T) {
	const text = `
directories: {src: ./src, tests: .abl//tests/}
source: {repo: ./}
adopt: {exclude: [./a/b/, c/../d]}
images: {builder: {dockerfile: ./.abl/images/Dockerfile}}
agents: {scripted: {scenario: ./scenario.yaml}}
network: {ca_cert: ./ca.pem}
app: {command: run, port: 80, services: {db: {dockerfile: ./db/Dockerfile, files: {/etc/seed.sql: ./seed.sql}, ready: {port: 5432}}}}
`
	l, err := Load(project(t, map[string]string{".abl/config.yaml": text}), lookup(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	db := l.App.Services["db"]
	got := []string{
		l.Directories.Src, l.Directories.Tests, l.Source.Repo, strings.Join(l.Adopt.Exclude, " "), l.Images.Builder.Dockerfile,
		l.Agents["scripted"].Scenario, l.Network.CACert, db.Dockerfile, db.Files["/etc/seed.sql"],
	}
	want := []string{"src", ".abl/tests", ".", "a/b d", ".abl/images/Dockerfile", "scenario.yaml", "ca.pem", "db/Dockerfile", "seed.sql"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestLoadPrecedenceAndSources(t *testing.T) {
	dir := project(t, map[string]string{
		".abl/config.yaml": "agent: scripted\nmodels:\n  builder: file\nloop:\n  call_timeout: 1m\n  idle_timeout: 1m\n  no_progress: 1\ndirectories: {src: file}\n" +
			"builder_commands:\n  lint:\n    command: make lint\n",
		".env": "ABL_LOOP_IDLE_TIMEOUT=2m\nABL_LOOP_NO_PROGRESS=2\nABL_DIRECTORIES_SRC=earlier\nABL_DIRECTORIES_TESTS=t2\nGEMINI_API_KEY=sesame-sesame\n",
	})
	env := lookup(map[string]string{
		"ABL_LOOP_NO_PROGRESS": "3", "ABL_AGENT_VERIFIER": "gemini", "ABL_MODELS": "a, b", "ABL_AGENT": "",
		"ABL_VERSION": "9.9", "ABL_APP_PORT": "80",
	})
	flags := map[string]string{"models.verifier": "flagged", "app.command": "run", "limits.cpus": ""}
	l, err := Load(dir, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"agent.builder": "scripted|.abl/config.yaml:1", "agent.verifier": "gemini|ABL_AGENT_VERIFIER",
		"models.builder": "a, b|ABL_MODELS", "models.verifier": "flagged|flag models.verifier",
		"loop.call_timeout": "1m|.abl/config.yaml:5", "loop.idle_timeout": "2m|ABL_LOOP_IDLE_TIMEOUT in .env",
		"loop.no_progress.failed": "3|ABL_LOOP_NO_PROGRESS", "loop.no_progress.unverified": "2|default", "directories.src": "earlier|ABL_DIRECTORIES_SRC in .env",
		"directories.tests": "t2|ABL_DIRECTORIES_TESTS in .env", "version": "1|default", "limits.cpus": "2|default",
		"app.port": "80|ABL_APP_PORT", "app.command": "run|flag app.command", "app.copy": "auto|default",
		"builder_commands.lint.command": "make lint|.abl/config.yaml:11", "builder_commands.lint.timeout": "10m|default",
	}
	got := map[string]string{}
	last := ""
	for _, line := range l.Lines() {
		if line.Key <= last {
			t.Errorf("order of the keys: got %s after %s, want them sorted", line.Key, last)
		}
		last = line.Key
		if _, asked := want[line.Key]; asked {
			got[line.Key] = line.Value + "|" + line.Source
		}
		if strings.Contains(line.Value, "sesame") {
			t.Errorf("value of %s: got one with a secret, want it left out", line.Key)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
	if l.Dotenv["GEMINI_API_KEY"] != "sesame-sesame" {
		t.Errorf("variables of .env: got %v, want GEMINI_API_KEY=sesame-sesame", l.Dotenv)
	}
}

func TestLoadRoleBesideDefault(t *testing.T) {
	l, err := Load(project(t, map[string]string{".abl/config.yaml": "agent: {builder: scripted}\n"}), lookup(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Agent != (PerRole{"scripted", "gemini"}) {
		t.Errorf("agents: got %+v, want scripted and gemini", l.Agent)
	}
	if a, b := l.source("agent.builder"), l.source("agent.verifier"); a != ".abl/config.yaml:1" || b != "" {
		t.Errorf("sources of the agents: got %q and %q, want .abl/config.yaml:1 and none", a, b)
	}
}

func TestFilesOfEarlierTools(t *testing.T) {
	names := []string{".abl/config.yaml", ".abl/abl.config.yaml", "abl.config.yaml"} // the first counts
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{}
			for _, later := range names[i+1:] {
				all[later] = "agent: codex\n"
			}
			all[name] = "agent: scripted\n"
			l, err := Load(project(t, all), lookup(nil), nil)
			if err != nil || l.Agent.Builder != "scripted" || l.File != name {
				t.Errorf("got %+v, %v, want agent scripted of file %s", l, err, name)
			}
		})
	}
}

func TestLoadRefusesLinks(t *testing.T) {
	for _, name := range []string{".abl/config.yaml", ".env"} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, map[string]string{"real": "", ".abl/x": ""})
			if err := os.Symlink(filepath.Join(dir, "real"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(dir, lookup(nil), nil); !errors.Is(err, hostfs.ErrNotRegular) {
				t.Errorf("error for a link: got %v, want %v", err, hostfs.ErrNotRegular)
			}
		})
	}
}

func TestSizeAndDuration(t *testing.T) {
	sizes := map[string]Size{"0": 0, "1": 1, "1k": 1024, "3M": 3 << 20, "4g": 4 << 30, "2t": 2 << 40}
	for text, want := range sizes {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("size %q: got %d, error %v, want %d", text, got, err, want)
		}
		var again Size
		back, _ := got.MarshalText()
		if err := again.UnmarshalText(back); err != nil || again != got {
			t.Errorf("size %q written as %s: got %d, error %v, want %d", text, back, again, err, got)
		}
	}
	for _, text := range []string{"", "g", "-1", "1.5g", "4 g", "9223372036854775807k", "8388608t", "1kb"} {
		if err := new(Size).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("size %q: got no error, want one", text)
		}
	}
	for text, want := range map[string]string{"1800s": "30m", "4h": "4h", "90s": "1m30s", "60m": "1h", "1h1m1s": "1h1m1s", "500ms": "500ms", "0s": "0s", "10h": "10h", "10m": "10m"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			t.Error(err)
		}
		if got, _ := d.MarshalText(); string(got) != want {
			t.Errorf("duration %s: got %s, want %s", text, got, want)
		}
	}
}

func TestEffort(t *testing.T) {
	for text, want := range map[string]string{
		"3x": "3x 12s", "0.5x": "0.5x 5s", "0": "0s 0s", "0x": "0s 0s", "10m": "10m 10m0s", "1m30s": "1m30s 1m30s",
	} {
		t.Run(text, func(t *testing.T) {
			l, err := Load(project(t, map[string]string{".abl/config.yaml": "verify: {strength_time: " + text + "}\n"}), lookup(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			e := l.Verify.StrengthTime
			shown, err := e.MarshalText()
			if got := fmt.Sprintf("%s %s", shown, e.Of(4*time.Second)); err != nil || got != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		})
	}
}

func TestAllowWeak(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"all":        {"all", "all"},
		"list":       {"[P1.C3]", "P1.C3"},
		"comma":      {"P1.C3, P2.C4", "P1.C3, P2.C4"},
		"empty-list": {"[]", ""},
		"empty":      {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Load(project(t, map[string]string{".abl/config.yaml": "verify:\n  allow_weak: " + c.text + "\n"}), lookup(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(l.Verify.AllowWeak, ", "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
