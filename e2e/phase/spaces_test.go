package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// The sizes of /tmp, the home and /dev/shm are settings, for roles, the app, replays and
// app.prepare. If a program fails for lack of space, abl names the setting. The user in each of
// these containers has a name, for tools that look up their own user, such as ssh and os.userInfo.
func TestSizesAndUserOfContainers(t *testing.T) {
	lab.Long(t)
	const sizes = `test "$(df -BM --output=size /tmp "$HOME" /dev/shm | tail -n +2 | tr -d ' \n')" = 40M30M20M`
	const named = `test "$(whoami) $(id -gn) $USER $LOGNAME" = "agent agent agent agent" && ` +
		`getent passwd root >/dev/null && test "$(getent passwd agent | cut -d: -f6)" = "$HOME"`
	const app = "app: {command: node server.mjs, port: 3000, ready: {path: /, timeout: 20s}, prepare: 'PREPARE'}\n" +
		"verify: {evidence: required, strength_time: 0, allow_weak: [all]}\n"
	p := newProject(t, app)
	settings := strings.Replace(p.Read(".abl/config.yaml"), "limits: {memory: 1g}",
		"limits: {memory: 1g, tmp: 40m, home: 30m, shm: 20m, prepare: 10m}", 1)
	prepare := func(command string) {
		p.Write(".abl/config.yaml", strings.Replace(settings, "PREPARE", command, 1))
	}
	prepare("true")
	script(p, builds(run("dd if=/dev/zero of=/tmp/x bs=1M count=100"), must(0, "false")))
	wants(t, "a call that fills /tmp", p.Must(5, "phase", "1").Stderr, "its /tmp is full (limits.tmp)")

	tests := strings.Replace(suite, "echo 1..1\n", "echo 1..1\n"+sizes+" || exit 3\n"+named+" || exit 4\n", 1)
	script(p, builds(write("server.mjs", lab.File(t, "apps/names-its-user.mjs")), write("requirements.txt", "\n"),
		must(0, sizes), must(0, named)),
		verifies(write("run.sh", tests, "0755"), must(0, sizes), must(0, named),
			must(0, `test "$(curl -sf "$ABL_APP_URL/user")" = agent`)))
	prepare("dd if=/dev/zero of=/tmp/x bs=1M count=50")
	r := p.Run("phase", "1", "--max-iterations", "1")
	wants(t, "app.prepare that fills its /tmp", r.Stdout+r.Stderr, "its /tmp is full (limits.prepare)")
	prepare("true")
	p.Must(0, "phase", "1", "--again")
	checkNothingLeft(p)
}
