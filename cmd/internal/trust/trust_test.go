package trust

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/internal/config"
)

// A folder above the user's own can be a project that another user has made there, as in /tmp. The
// settings of such a project are not the user's. Root works in other users' projects as they would.
func TestFilesOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const other = 4711
	for _, c := range []struct {
		name         string
		config, root int // their owners
		env          int // of .env, -1 for no such file
		want         string
	}{
		{"all is the user's", 0, 0, 0, "<nil>"},
		{"the settings are another's", other, 0, -1, "another user of this machine has written 1 setting that may not be yours: .abl/config.yaml:1: notify.command=id"},
		{".env is another's", 0, 0, other, "another user of this machine has written 1 setting that may not be yours: .env:1: GEMINI_API_KEY=k"},
		{"root works for another user", other, other, other, "<nil>"},
		{"a third user writes there", other + 1, other, -1, "another user of this machine has written 1 setting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			give := func(name, text string, owner int) {
				t.Helper()
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chown(path, owner, owner); err != nil {
					t.Fatal(err)
				}
			}
			give(".abl/config.yaml", "notify: {command: id}\n", c.config)
			if c.env >= 0 {
				give(".env", "GEMINI_API_KEY=k\n", c.env)
			}
			if err := os.Chown(root, c.root, c.root); err != nil {
				t.Fatal(err)
			}
			conf, err := config.Load(root, func(string) (string, bool) { return "", false }, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(Check(t.Context(), new(cli.Input), root, conf)); !strings.HasPrefix(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
