package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"abl/internal/yamlfile"
)

func TestValidate(t *testing.T) {
	const f = ".abl/config.yaml:"
	app := "app:\n  command: x\n  port: 1\n"
	service := app + "  services: {db: {image: x, ready: {port: 1}, files: "
	tests := []struct{ in, want string }{
		{"version: 2\n", f + `1: version: want 1: this abl supports 1, got "2"`},
		{"version: 0\n", f + `1: version: want 1: this abl supports 1, got "0"`},
		{"agnet: x\n", f + `1: unknown key "agnet"; did you mean "agent"?`},
		{"agent: gemni\n", f + `1: agent.builder: unknown agent "gemni"; did you mean "gemini"?`},
		{"agent:\n  verifier: zzz\n", f + `2: agent.verifier: unknown agent "zzz"; want one of gemini, claude, codex, copilot, scripted`},
		{"agent: [a]\n", f + "1: agent: want keys and values, got a list"},
		{"agents:\n  mine: {}\n", f + `2: agents.mine: unknown agent "mine"; want one of gemini, claude, codex, copilot, scripted`},
		{"agents:\n  scripted:\n    provider: scripted\n", f + `3: agents.scripted.provider: want one of abl's agents that has a provider, got "scripted"`},
		{"agents:\n  gemini:\n    provider: gemini\n", f + `3: agents.gemini.provider: only scripted and your own agents have one`},
		{"agents:\n  copilot:\n    api: openai\n", f + `3: agents.copilot.api: want openai-responses, openai-chat, anthropic or gemini, got "openai"`},
		{"agents:\n  codex:\n    api: openai-chat\n", f + `3: agents.codex.api: of abl's agents only copilot has one: openai-responses or openai-chat`},
		{"agents:\n  scripted:\n    scenario: /etc/x\n", f + `3: agents.scripted.scenario: want a path inside the project, got "/etc/x"`},
		{"agents:\n  mine: {env: {A: b}}\n", f + `2: agents.mine: unknown agent "mine"; want one of gemini, claude, codex, copilot, scripted`},
		{"agents:\n  claude: {command: x}\n", f + `2: agents.claude: "claude" is one of abl's agents, whose command you cannot change`},
		{"agents:\n  My: {command: x}\n", f + `2: agents.My: want a name of lower-case letters, digits and -, got "My"`},
		{"agents:\n  mine: {command: x, usage: a..b}\n", f + `2: agents.mine.usage: want the keys that lead to the tokens, such as result.usage, got "a..b"`},
		{"agents:\n  mine: {command: x, image: debian}\n", f + `2: agents.mine.image: want gemini, claude, codex, copilot, tools, or an image with its tag such as debian:12, got "debian"`},
		{"agents:\n  mine: {command: x, acp: x}\n", f + `2: agents.mine.acp: want command or acp, not both`},
		{"agents:\n  mine: {acp: x, api: openai-chat}\n", f + `2: agents.mine.key: missing, want the variable of the key`},
		{"agents:\n  mine: {acp: x, key: K}\n", f + `2: agents.mine.api: missing: key and base need it`},
		{"agents:\n  mine: {acp: x, api: gemini, key: K, provider: gemini}\n", f + `2: agents.mine.provider: want provider or api, not both`},
		{"agents:\n  mine: {acp: x, api: gemini, key: K, login: key}\n", f + `2: agents.mine.login: only gemini, claude, codex, copilot have one`},
		{"agents:\n  mine: {acp: x, npm: opencode}\n", f + `2: agents.mine.npm: want npm packages at an exact version, such as opencode-linux-{arch}@1.18.34, got "opencode"`},
		{"agents:\n  mine: {acp: x, npm: a@1.0.0, image: \"debian:12\"}\n", f + `2: agents.mine.npm: abl adds npm packages to its own images only`},
		{"agents:\n  mine: {acp: x, api: gemini, key: none, base: \"https://u:p@host\"}\n", f + `2: agents.mine.base: want an address such as https://openrouter.ai/api/v1, got "https://u:p@host"`},
		{"agents:\n  claude: {npm: a@1.0.0}\n", f + `2: agents.claude: "claude" is one of abl's agents, whose command you cannot change`},
		{"agents:\n  copilot: {api: gemini}\n", f + `2: agents.copilot.api: of abl's agents only copilot has one: openai-responses or openai-chat`},
		{"agents:\n  mine: {command: x, model: -m}\n", f + `2: agents.mine.model: want the name of a model, got "-m"`},
		{"agents:\n  mine: {command: x, env: {ABL_MODEL: x}}\n", f + `2: agents.mine.env.ABL_MODEL: want a name that does not begin with ABL_, got "ABL_MODEL"`},
		{"agents:\n  mine: {command: x, env: {1A: x}}\n", f + `2: agents.mine.env.1A: want the name of a variable, got "1A"`},
		{"agents:\n  mine: {command: x, version: 1.0.0}\n", f + `2: agents.mine.version: only gemini, claude, codex, copilot have one`},
		{"agents:\n  codex: {version: latest}\n", f + `2: agents.codex.version: want an exact version such as 0.171.0, got "latest"`},
		{"agents:\n  mine: {command: x, scenario: x}\n", f + `2: agents.mine.scenario: only the scripted agent has one`},
		{"agents:\n  mine: {command: x, provider: scripted}\n", f + `2: agents.mine.provider: want one of abl's agents that has a provider, got "scripted"`},
		{"agent: mini\nagents:\n  mine: {command: x}\n", f + `1: agent.builder: unknown agent "mini"; did you mean "mine"?`},
		{"models:\n  builder: [a, --yolo]\n", f + `2: models.builder: want the name of a model, got "--yolo"`},
		{"models: ''\n", f + `1: models.builder: want the name of a model, got ""`},
		{"directories: {src: .}\n", f + `1: directories.src: want a directory inside the project, got "."`},
		{"directories: {src: ''}\n", f + `1: directories.src: want a directory inside the project, got ""`},
		{"directories: {src: /a}\n", f + `1: directories.src: want a directory inside the project, got "/a"`},
		{"directories: {src: ../a}\n", f + `1: directories.src: want a directory inside the project, got "../a"`},
		{"directories: {src: a/../..}\n", f + `1: directories.src: want a directory inside the project, got "a/../.."`},
		{"directories: {src: \"a\\tb\"}\n", f + `1: directories.src: want a directory inside the project, got "a\tb"`},
		{"directories: {tests: .abl}\n", f + `1: directories.tests: ".abl" overlaps .abl/specs, which no role may write`},
		{"directories: {src: prompts}\n", f + `1: directories.src: "prompts" overlaps prompts, which no role may write`},
		{"directories: {src: .git/x}\n", f + `1: directories.src: ".git/x" overlaps .git, which no role may write`},
		{"directories: {tests: .abl/LOGS/x}\n", f + `1: directories.tests: ".abl/LOGS/x" overlaps .abl/logs, which no role may write`},
		{"directories:\n  src: a\n  tests: a/t\n", f + `3: directories.tests: "a/t" overlaps directories.src ("a")`},
		{"directories:\n  src: .abl/tests/s\n", f + `1: directories.tests: ".abl/tests" overlaps directories.src (".abl/tests/s")`},
		{"directories: {src: a, tests: a}\n", f + `1: directories.tests: "a" overlaps directories.src ("a")`},
		{"builder_commands:\n  Lint: {command: x}\n", f + `2: builder_commands.Lint: want lower-case letters, digits, - and _, got "Lint"`},
		{"verifier_commands:\n  restart: {command: x}\n", f + `2: verifier_commands.restart: want a name that is not a command of abl-cmd, got "restart"`},
		{"verifier_commands:\n  seed:\n", f + `2: verifier_commands.seed.command: missing, want the command to run`},
		{"verifier_commands: {s: {command: x, output: all}}\n", f + `1: verifier_commands.s.output: want shown or hidden, got "all"`},
		{"verifier_commands: {s: {command: x, timeout: 999us}}\n", f + `1: verifier_commands.s.timeout: want 1ms or more, got "999µs"`},
		{"app: {port: 1}\n", f + `1: app.command: missing, want the command that starts the app`},
		{"app: {command: x}\n", f + `1: app.port: missing, want 1 to 65535`},
		{app + "  prepare: ' '\n", f + `4: app.prepare: want the command that installs the dependencies, such as npm ci, got " "`},
		{"app:\n  command: x\n  port: 65536\n", f + `3: app.port: want 1 to 65535, got "65536"`},
		{app + "  kind: grpc\n", f + `4: app.kind: want http, tcp or command, got "grpc"`},
		{app + "  kind: command\n", f + `3: app.port: app.kind is command, which has no port`},
		{app + "  kind: tcp\n  ready: {path: /}\n", f + `5: app.ready.path: needs HTTP, and app.kind is tcp`},
		{"app:\n  kind: tcp\n  command: x\n", f + `1: app.port: missing, want 1 to 65535`},
		{"app:\n  kind: command\n", f + `1: app.command: missing, want the command that starts the app`},
		{"app:\n  kind: command\n  command: x\n  ready: {timeout: 5s}\n", f + `4: app.ready: app.kind is command, which abl does not start before the tests`},
		{"app:\n  kind: command\n  command: 'node cli.js # x'\n", f + `3: app.command: abl appends arguments, and "node cli.js # x" ends in a comment, or with ; & or |`},
		{"app:\n  kind: command\n  command: x\nverifier_commands:\n  app: {command: y}\n",
			f + `5: verifier_commands.app: with app.kind command, abl-cmd app runs the program`},
		{"app:\n  command: x\n  port: 7070\n", f + `3: app.port: abl uses port 7070 in the app's container`},
		{app + "  copy: fast\n", f + `4: app.copy: want auto, overlay or tar, got "fast"`},
		{app + "  ready: {path: health}\n", f + `4: app.ready.path: want a path such as /health, got "health"`},
		{app + "  ready: {path: \"/a b\"}\n", f + `4: app.ready.path: want a path such as /health, got "/a b"`},
		{app + "  ready: {timeout: 0s}\n", f + `4: app.ready.timeout: want 1ms or more, got "0s"`},
		{app + "  ready: {port: 2}\n", f + `4: app.ready.port: want no port: abl checks app.port, got "2"`},
		{app + "  env: {1A: x}\n", f + `4: app.env.1A: want the name of a variable, got "1A"`},
		{app + "  env:\n    ABL_X: x\n", f + `5: app.env.ABL_X: want a name that does not begin with ABL_, got "ABL_X"`},
		{app + "  services: {app: {image: x}}\n", f + `4: app.services.app: want another name than app, got "app"`},
		{app + "  services: {D_B: {image: x}}\n", f + `4: app.services.D_B: want lower-case letters, digits and -, got "D_B"`},
		{app + "  services: {db: {ready: {port: 1}}}\n", f + `4: app.services.db: want an image or a dockerfile, not both`},
		{app + "  services:\n    db:\n      image: x\n      dockerfile: d/Dockerfile\n      ready: {port: 1}\n", f + `5: app.services.db: want an image or a dockerfile, not both`},
		{app + "  services: {db: {image: \"a b\"}}\n", f + `4: app.services.db.image: want the name of an image, got "a b"`},
		{app + "  services: {db: {dockerfile: ../Dockerfile}}\n", f + `4: app.services.db.dockerfile: want a path inside the project, got "../Dockerfile"`},
		{app + "  services: {db: {dockerfile: src/Dockerfile, ready: {port: 1}}}\n", f + `4: app.services.db.dockerfile: "src/Dockerfile" is in src, which a role may write`},
		{service + "{seed.sql: a}}}\n", f + `4: app.services.db.files.seed.sql: want the absolute path of a file in the service's container, got "seed.sql"`},
		{service + "{/seed.sql: a}}}\n", f + `4: app.services.db.files./seed.sql: want the absolute path of a file in the service's container, got "/seed.sql"`},
		{service + "{/a/../b/c: a}}}\n", f + `4: app.services.db.files./a/../b/c: want the absolute path of a file in the service's container, got "/a/../b/c"`},
		{service + "{/a/b.sql: /etc/passwd}}}\n", f + `4: app.services.db.files./a/b.sql: want the path of a file in the project, outside .env and abl's own files, got "/etc/passwd"`},
		{service + "{/a/b.sql: .abl/tests/b.sql}}}\n", f + `4: app.services.db.files./a/b.sql: ".abl/tests/b.sql" is in .abl/tests, which a role may write`},
		{service + "{/a/b.sql: .env}}}\n", f + `4: app.services.db.files./a/b.sql: want the path of a file in the project, outside .env and abl's own files, got ".env"`},
		{service + "{/a/b.sql: .abl/logs/x}}}\n", f + `4: app.services.db.files./a/b.sql: want the path of a file in the project, outside .env and abl's own files, got ".abl/logs/x"`},
		{app + "  services: {db: {image: x}}\n", f + `4: app.services.db.ready.port: missing, want 1 to 65535`},
		{"prices: ../p.yaml\n", f + `1: prices: want a path inside the project, or {MODEL: {input: 1.25, output: 10}}, got "../p.yaml"`},
		{"prices: src/p.yaml\n", f + `1: prices: "src/p.yaml" is in src, which a role may write`},
		{"prices: .abl/tests/p.yaml\n", f + `1: prices: ".abl/tests/p.yaml" is in .abl/tests, which a role may write`},
		{"prices: [a]\n", f + "1: prices: want keys and values, got a list"},
		{"prices:\n  --x: {input: 1}\n", f + `2: prices: want the name of a model, got "--x"`},
		{"loop: {max_verifier_iterations: 0}\n", f + `1: loop.max_verifier_iterations: want 1 to 100, got "0"`},
		{"loop: {call_timeout: 0s}\n", f + `1: loop.call_timeout: want 1s or more, got "0s"`},
		{"loop: {idle_timeout: -5m}\n", f + `1: loop.idle_timeout: want 1s or more, got "-5m"`},
		{"loop: {call_timeout: soon}\n", f + `1: loop.call_timeout: want a time such as 90s, 30m or 4h, got "soon"`},
		{"loop: {outage_budget: -1s}\n", f + `1: loop.outage_budget: want 0 or more, got "-1s"`},
		{"loop: {no_progress: -1}\n", f + `1: loop.no_progress.failed: want 0 (off) or more, got "-1"`},
		{"loop: {no_progress: {unverified: -2}}\n", f + `1: loop.no_progress.unverified: want 0 (off) or more, got "-2"`},
		{"loop: {no_progress: [2]}\n", f + "1: loop.no_progress: want keys and values, got a list"},
		{"verify: {evidence: maybe}\n", f + `1: verify.evidence: want required or off, got "maybe"`},
		{"loop: {require_approval: false}\n", f + "1: loop.require_approval is no longer a setting"},
		{"verify:\n  challenge: [away]\n", f + "2: verify.challenge is no longer a setting"},
		{"verify: {strength_time: soon}\n", f + `1: verify.strength_time: want a duration such as 90s or 30m, a multiple of the tests' duration such as 3x, or 0, got "soon"`},
		{"verify: {strength_time: -1x}\n", f + `1: verify.strength_time: want a duration such as 90s or 30m, a multiple of the tests' duration such as 3x, or 0, got "-1x"`},
		{"verify: {strength_time: nanx}\n", f + `1: verify.strength_time: want a duration such as 90s or 30m, a multiple of the tests' duration such as 3x, or 0, got "nanx"`},
		{"verify: {allow_weak: [P1.C3, C4]}\n", f + `1: verify.allow_weak: want the id of a contract such as P1.C3, or all, got "C4"`},
		{"budget: {call: {tokens: -1}}\n", f + `1: budget.call.tokens: want 0 (no limit) or more, got "-1"`},
		{"network: {pool: 8.8.0.0/16}\n", f + `1: network.pool: want a private IPv4 range of /24 or larger, such as 10.231.0.0/16, got "8.8.0.0/16"`},
		{"network: {pool: 10.1.2.3/16}\n", f + `1: network.pool: want a private IPv4 range of /24 or larger, such as 10.231.0.0/16, got "10.1.2.3/16"`},
		{"network: {pool: 'fd00::/64'}\n", f + `1: network.pool: want a private IPv4 range of /24 or larger, such as 10.231.0.0/16, got "fd00::/64"`},
		{"network: {pool: 10.0.0.0/28}\n", f + `1: network.pool: want a private IPv4 range of /24 or larger, such as 10.231.0.0/16, got "10.0.0.0/28"`},
		{"network: {allow: ['http://x']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "http://x"`},
		{"network:\n  allow:\n    - npm\n    - nmp\n", f + `4: network.allow: there is no registry "nmp"; did you mean "npm"?`},
		{"network: {allow: [NPM]}\n", f + `1: network.allow: there is no registry "NPM"; did you mean "npm"?`},
		{"network: {allow: [cargo]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "cargo"`},
		{"network: {allow: [localhost]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "localhost"`},
		{"network: {allow: [x.localhost]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "x.localhost"`},
		{"network: {allow: ['npm:443']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "npm:443"`},
		{"network: {allow: ['a.example:0']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "a.example:0"`},
		{"network: {allow: ['a.example:65536']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "a.example:65536"`},
		{"network: {allow: ['a.example:0443']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "a.example:0443"`},
		{"network: {allow: ['a.example:']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "a.example:"`},
		{"network: {allow: ['*.example']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "*.example"`},
		{"network: {allow: [a.example.]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "a.example."`},
		{"network: {allow: [10.1.2.3]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "10.1.2.3"`},
		{"network: {allow: ['8.8.8.8:443']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "8.8.8.8:443"`},
		{"network: {allow: ['127.1']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "127.1"`},
		{"network: {allow: ['[::1]:443']}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "[::1]:443"`},
		{"network: {allow: [{host: 10.1.2.3, private: true}]}\n", f + `1: network.allow: want crates, go, maven, npm, pypi, or the name of a host with its domain, such as registry.example or registry.example:8443, got "10.1.2.3"`},
		{"network: {allow: [{host: npm, private: true}]}\n", f + `1: network.allow: want the name of a host with private: true, got "npm"`},
		{"network: {proxy: 'http://me:secret@proxy.example:1'}\n", f + `1: network.proxy: want none, or the address of an HTTP proxy without a login, such as http://proxy.example:3128`},
		{"network: {proxy: 'socks5://proxy.example:1'}\n", f + `1: network.proxy: want none, or the address of an HTTP proxy without a login, such as http://proxy.example:3128`},
		{"network: {ca_cert: ../ca.pem}\n", f + `1: network.ca_cert: want an absolute path, or a path inside the project, got "../ca.pem"`},
		{"network: {ca_cert: src/ca.pem}\n", f + `1: network.ca_cert: "src/ca.pem" is in src, which a role may write`},
		{"network: {ca_cert: .abl/tests/ca.pem}\n", f + `1: network.ca_cert: ".abl/tests/ca.pem" is in .abl/tests, which a role may write`},
		{"network: {egress: '-x'}\n", f + `1: network.egress: want the name of a network of the engine, got "-x"`},
		{"limits: {memory: 1m}\n", f + `1: limits.memory: want 16m or more: a container with less does not start, got "1m"`},
		{"limits: {memory: lots}\n", f + `1: limits.memory: want a size such as 512m or 4g, got "lots"`},
		{"limits: {cpus: 0}\n", f + `1: limits.cpus: want more than 0, got "0"`},
		{"limits: {pids: 0}\n", f + `1: limits.pids: want more than 0, got "0"`},
		{"limits: {output: 0}\n", f + `1: limits.output: want more than 0, got "0"`},
		{"images: {app: {dockerfile: src/Dockerfile}}\n", f + `1: images.app.dockerfile: "src/Dockerfile" is in src, which a role may write`},
		{"images: {builder: {dockerfile: .abl/tests/x/Dockerfile}}\n", f + `1: images.builder.dockerfile: ".abl/tests/x/Dockerfile" is in .abl/tests, which a role may write`},
		{"images: {app: {dockerfile: ../D}}\n", f + `1: images.app.dockerfile: want a path inside the project, got "../D"`},
	}
	for _, tt := range tests {
		_, err := Load(project(t, map[string]string{".abl/config.yaml": tt.in}), lookup(nil), nil)
		var located *yamlfile.Error
		if !errors.As(err, &located) || err.Error() != tt.want {
			t.Errorf("%q:\ngot  %v\nwant %s", tt.in, err, tt.want)
		}
	}
}

func TestMistakesOutsideTheFileNameTheirPlace(t *testing.T) {
	tests := []struct {
		env, flags map[string]string
		dotenv     string
		want       string
	}{
		{env: map[string]string{"ABL_AGENT": "x"}, want: `ABL_AGENT: agent.builder: unknown agent "x"; want one of gemini, claude, codex, copilot, scripted`},
		{env: map[string]string{"ABL_LOOP_NO_PROGRESS": "x"}, want: `ABL_LOOP_NO_PROGRESS: loop.no_progress: want a whole number, got "x"`},
		{env: map[string]string{"ABL_BUDGET_PHASE_TOKENS": "0.5"}, want: `ABL_BUDGET_PHASE_TOKENS: budget.phase.tokens: want a whole number, got "0.5"`},
		{env: map[string]string{"ABL_LIMITS_REQUESTS": "010"}, want: `ABL_LIMITS_REQUESTS: limits.requests: want a whole number, got "010"`},
		{flags: map[string]string{"loop.no_progress": "0.5"}, want: `flag loop.no_progress: loop.no_progress: want a whole number, got "0.5"`},
		{flags: map[string]string{"agent": "x"}, want: `--agent: agent.builder: unknown agent "x"; want one of gemini, claude, codex, copilot, scripted`},
		{flags: map[string]string{"app.port": "80"}, want: `.abl/config.yaml: app.command: missing, want the command that starts the app`},
		{dotenv: "ABL_DIRECTORIES_SRC=..\n", want: `ABL_DIRECTORIES_SRC in .env: directories.src: want a directory inside the project, got ".."`},
		{dotenv: "K=\"sesame\n", want: ".env:1" + notOne},
	}
	for _, tt := range tests {
		_, err := Load(project(t, map[string]string{".env": tt.dotenv}), lookup(tt.env), tt.flags)
		if err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

func TestCheckSecrets(t *testing.T) {
	in := "app:\n  command: x\n  port: 1\n  env:\n    URL: %s\n"
	tests := []struct {
		value string
		held  bool
	}{
		{"sesame-open", true}, {"db://u:sesame-open@h", true}, {"pin1", true}, {"http://pin1", false}, {"other", false}, {"''", false},
	}
	secrets := map[string]string{"KEY": "sesame-open", "PIN": "pin1", "EMPTY": ""}
	for _, tt := range tests {
		files := map[string]string{".abl/config.yaml": strings.Replace(in, "%s", tt.value, 1)}
		l, err := Load(project(t, files), lookup(nil), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = l.CheckSecrets(secrets)
		if (err != nil) != tt.held {
			t.Errorf("secret in %s: got error %v, want one: %t", tt.value, err, tt.held)
		}
		if err != nil && (!strings.HasPrefix(err.Error(), ".abl/config.yaml:5: app.env.URL: contains the secret ") || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("secret in %s: got error %v, want one that names app.env.URL, without the secret", tt.value, err)
		}
	}
}

func TestCheckSecretsOfServices(t *testing.T) {
	l := &Loaded{Config: Default()}
	if err := l.CheckSecrets(map[string]string{"KEY": "sesame"}); err != nil {
		t.Error(err)
	}
	l.App = &App{Services: map[string]Service{"db": {Env: map[string]string{"PASS": "sesame"}}}}
	if err := l.CheckSecrets(map[string]string{"KEY": "sesame"}); err == nil || !strings.Contains(err.Error(), "app.services.db.env.PASS: contains the secret KEY") {
		t.Errorf("secret of a service: got error %v, want one that names app.services.db.env.PASS and KEY", err)
	}
}

// Seeds of services are read only from the project, without links, and errors name the line.
func TestSeeds(t *testing.T) {
	const begin = "app:\n  command: x\n  port: 1\n  services:\n    db:\n      image: x\n      ready: {port: 1}\n      files:\n        /a/b.sql: "
	for name, want := range map[string]string{
		".abl/seed.sql": "", ".abl/none.sql": `.abl/config.yaml:9: app.services.db.files./a/b.sql: cannot read ".abl/none.sql": does not exist`,
		".abl/link.sql": `.abl/config.yaml:9: app.services.db.files./a/b.sql: cannot read ".abl/link.sql": `, "folder/seed.sql": `cannot read "folder/seed.sql": `,
		".abl/sub": `cannot read ".abl/sub": is not a regular file but a directory`, ".abl/large.sql": `cannot read ".abl/large.sql": is too large`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, map[string]string{".abl/config.yaml": begin + name + "\n", ".abl/seed.sql": "text", ".abl/sub/x": "", "outside/seed.sql": "text", ".abl/large.sql": ""})
			if err := errors.Join(os.Symlink("seed.sql", filepath.Join(dir, ".abl/link.sql")), os.Symlink("outside", filepath.Join(dir, "folder")), os.Truncate(filepath.Join(dir, ".abl/large.sql"), maxSeed+1)); err != nil {
				t.Fatal(err)
			}
			l, err := Load(dir, lookup(nil), nil)
			if err != nil {
				t.Fatal(err)
			}
			seeds, err := l.Seeds(dir, "db")
			if want == "" && (err != nil || string(seeds["/a/b.sql"]) != "text") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %q, %v, want %s", seeds, err, want)
			}
		})
	}
}

func TestCheckCommands(t *testing.T) {
	keys := map[string]string{"KEY": "sesame-open"}
	l := &Loaded{Config: Default()}
	if err := l.CheckCommands(keys); err != nil {
		t.Error(err)
	}
	for want, set := range map[string]func(){
		"app.command":                 func() { l.App = &App{Command: "serve sesame-open"} },
		"app.prepare":                 func() { l.App = &App{Prepare: "get sesame-open"} },
		"builder_commands.a.command":  func() { l.BuilderCommands = map[string]Command{"a": {Command: "x=sesame-open y"}} },
		"verifier_commands.b.command": func() { l.VerifierCommands = map[string]Command{"b": {Command: "sesame-open"}} },
	} {
		l = &Loaded{Config: Default()}
		set()
		if err := l.CheckCommands(keys); err == nil || !strings.Contains(err.Error(), want+": contains the secret KEY") || strings.Contains(err.Error(), "sesame") {
			t.Errorf("secret in %s: got error %v, want one that names it and KEY, without the secret", want, err)
		}
	}
}

func TestCheckDirs(t *testing.T) {
	mkdir := func(at string) error { return os.MkdirAll(at, 0o755) }
	tests := []struct {
		name string
		make func(dir string) error
		want string
	}{
		{name: "missing", make: func(string) error { return nil }},
		{name: "there", make: func(dir string) error {
			return errors.Join(mkdir(dir+"/src"), mkdir(dir+"/.abl/tests"))
		}},
		{name: "link", want: `directories.src: "src" is a link`, make: func(dir string) error {
			return os.Symlink("/", dir+"/src")
		}},
		{name: "dangling link", want: `directories.src: "src" is a link`, make: func(dir string) error {
			return os.Symlink("nowhere", dir+"/src")
		}},
		{name: "link on the way", want: `directories.tests: ".abl" is a link`, make: func(dir string) error {
			return errors.Join(mkdir(dir+"/other/tests"), os.Symlink("other", dir+"/.abl"))
		}},
		{name: "file", want: `directories.src: "src" is not a directory`, make: func(dir string) error {
			return os.WriteFile(dir+"/src", nil, 0o644)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			l, err := Load(dir, lookup(nil), nil)
			if tt.name == "link on the way" { // files below a link are not read
				l, err = &Loaded{Config: Default()}, nil
			}
			if err != nil {
				t.Fatal(err)
			}
			err = l.CheckDirs(dir)
			if (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("CheckDirs: got error %v, want one that ends in %q, or none if that is empty", err, tt.want)
			}
		})
	}
}

func TestCheckDirsSameDirectory(t *testing.T) {
	dir := t.TempDir()
	l := &Loaded{Config: Default()}
	l.Directories = Directories{Src: "a", Tests: "a"} // as a bind mount creates them
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.CheckDirs(dir); err == nil || !strings.Contains(err.Error(), "are the same directory") {
		t.Errorf(`one directory for both: got error %v, want one with "are the same directory"`, err)
	}
}

// FuzzLoad checks that no file causes a panic, and that accepted settings separate the roles.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("directories: {src: a/b, tests: a}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &Loaded{Config: Default(), File: "c", Sources: map[string]string{}}
		if decode(l, data) != nil || validate(l) != nil {
			return
		}
		if overlap(l.Directories.Src, l.Directories.Tests) || overlap(l.Directories.Src, ".env") {
			t.Fatalf("got %+v, want directories that do not overlap", l.Directories)
		}
		l.Lines()
	})
}

func TestRaise(t *testing.T) {
	b := Budget{Call: Cap{USD: 1}, Phase: Cap{USD: 5, Tokens: 10}}
	inTokens, inDollars := b.Raise(7, 2.5)
	if want := (Budget{Call: Cap{USD: 3.5}, Phase: Cap{USD: 7.5, Tokens: 17}}); b != want || !inTokens || !inDollars {
		t.Errorf("raised budget: got %+v, tokens %v, dollars %v, want %+v, true, true", b, inTokens, inDollars, want)
	}
	if inTokens, inDollars := new(Budget).Raise(7, 2.5); inTokens || inDollars {
		t.Errorf("raised caps that are not set: got tokens %v, dollars %v, want false, false", inTokens, inDollars)
	}
}

// Arguments are appended to a program's command, which must not end with a part that drops them.
func TestLosesArguments(t *testing.T) {
	for command, want := range map[string]bool{
		"node cli.js":                          false,
		"node cli.js # x":                      true,
		"# x":                                  true,
		"a;#x":                                 true,
		"node cli.js &":                        true,
		"node cli.js;":                         true,
		"a |":                                  true,
		"# build\ngo build && ./x":             false,
		"go build # it\n./x":                   false,
		"go build\n./x # it":                   true,
		"echo 'a # b'":                         false,
		`echo "a # b" c`:                       false,
		`echo "a \" # b"`:                      false,
		`echo 'a' "b" # 'c'`:                   true,
		`echo \' # x`:                          true,
		`echo a\ #b`:                           false,
		`find . -exec x {} \;`:                 false,
		"echo $# a#b ${#c}":                    false,
		`go build -o "$HOME/t" . && "$HOME/t"`: false,
	} {
		t.Run(rowName(command), func(t *testing.T) {
			if got := losesArguments.MatchString(command); got != want {
				t.Errorf("arguments are lost: got %t, want %t", got, want)
			}
		})
	}
}

// rowName returns the name of a subtest for a command, for -run.
func rowName(command string) string {
	signs := strings.NewReplacer("#", " hash ", ";", " semicolon ", "&", " and ", "|", " pipe ", "\n", " line ", "\\", " backslash ")
	name := func(r rune) bool { return r != '.' && r != '/' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	return strings.Join(strings.FieldsFunc(signs.Replace(command), name), "-")
}
