package proc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnv(t *testing.T) {
	got := Env([]string{
		"PATH=/bin", "GEMINI_API_KEY=sesame-open", "COPY=of sesame-open here", "GH_TOKEN=x", "HTTPS_PROXY=http://me:pw@proxy:3128",
		"SSH_AUTH_SOCK=/tmp/s", "EMPTY_TOKEN=", "ODD", "X=x", "HOME=/home/x",
	})
	want := []string{"PATH=/bin", "HTTPS_PROXY=http://me:pw@proxy:3128", "SSH_AUTH_SOCK=/tmp/s", "ODD", "X=x", "HOME=/home/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got)\n%s", diff)
	}
}

// A real child gets no secrets and all other variables.
func TestCommand(t *testing.T) {
	t.Setenv("SOME_API_KEY", "sesame-open-4711")
	t.Setenv("SOME_SETTING", "kept")
	out, err := Command(t.Context(), "env").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "sesame") || !strings.Contains(string(out), "SOME_SETTING=kept\n") {
		t.Errorf("got %s, want SOME_SETTING=kept and no key", out)
	}
}
