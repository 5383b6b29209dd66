package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
)

// The user in a container has a name. Tools that look up their own user, such as ssh, psql and
// os.userInfo, find it in the calls of both roles, the app and replays.
func TestContainerUserHasAName(t *testing.T) {
	const named = `test "$(whoami) $(id -gn) $USER $LOGNAME" = "agent agent agent agent" && getent passwd root >/dev/null && test "$(getent passwd agent | cut -d: -f6)" = "$HOME"`
	p := newProject(t, nodeApp+"verify: {evidence: required, allow_weak: [all]}\n",
		builds(write("server.mjs", lab.File(t, "apps/names-its-user.mjs")), must(0, named)),
		verifies(write("run.sh", strings.Replace(suite, "echo 1..1\n", "echo 1..1\n"+named+" || exit 3\n", 1),
			"0755"), must(0, named),
			must(0, `test "$(curl -sf "$ABL_APP_URL/user")" = agent`)))
	p.Must(0, "phase", "1")
	checkNothingLeft(p)
}
