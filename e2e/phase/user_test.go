package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// Whoever runs in a container has a name: tools that look up their own user, as ssh, psql and
// os.userInfo do, find one, in the calls of both roles, the app and replays.
func TestUserHasAName(t *testing.T) {
	const named = `test "$(whoami) $(id -gn) $USER $LOGNAME" = "agent agent agent agent" && getent passwd root >/dev/null && test "$(getent passwd agent | cut -d: -f6)" = "$HOME"`
	p := newProject(t, nodeApp+"verify: {evidence: required, allow_weak: [all]}\n", builds(write("server.mjs", lab.File(t, "apps/names-its-user.mjs")), must(0, named)),
		verifies(write("run.sh", strings.Replace(suite, "echo 1..1\n", "echo 1..1\n"+named+" || exit 3\n", 1), "0755"), must(0, named),
			must(0, `test "$(curl -sf "$ABL_APP_URL/user")" = agent`)))
	p.Must(0, "phase", "1")
	noLeftovers(p)
}
