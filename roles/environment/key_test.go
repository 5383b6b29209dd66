package environment

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/config"
	"abl/roles/agent"
)

// A command prints the key. An error has the last line of its standard error, and nothing from its
// standard output.
func TestKeyCommand(t *testing.T) {
	for _, c := range []struct{ name, shell, want string }{
		{"a key", "echo '  a-key-1234 '", "a-key-1234"},
		{"in the project's folder", "basename \"$PWD\"", "project"},
		{"no key", "echo warn >&2; echo 'log in first' >&2", "agents.claude.key_command: it printed no key: log in first"},
		{"a failure", "echo a-key-1234; echo expired >&2; exit 3", "agents.claude.key_command: exit code 3: expired"},
		{"a silent failure", "exit 3", "agents.claude.key_command: exit code 3"},
		{"two lines", "echo a-key-1234; echo another", "agents.claude.key_command: it printed more than one line or more than 16384 bytes, so the output is not a key"},
		{"too long", "sleep 60", "agents.claude.key_command: it took longer than 300ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conf := &config.Loaded{Config: config.Default()}
			conf.Agents = map[string]config.Agent{"claude": {KeyCommand: c.shell}}
			dir := filepath.Join(t.TempDir(), "project")
			k := Agents{Conf: conf, Root: dir}.keyCommand("claude")
			if k.dir = filepath.Dir(dir); strings.Contains(c.shell, "PWD") {
				c.want = filepath.Base(k.dir)
			}
			if strings.Contains(c.shell, "sleep") {
				k.limit = 300 * time.Millisecond
			}
			key, err := k.run(context.Background())
			got := string(key)
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			classed, is := errors.AsType[*Error](err)
			if err != nil && (!is || classed.Class != Refused || strings.Contains(err.Error(), "a-key-1234")) {
				t.Errorf("got %#v, want an error of the class refused without the key", err)
			}
		})
	}
}

func TestWhereAKeyComesFrom(t *testing.T) {
	conf := &config.Loaded{Config: config.Default(), Dotenv: map[string]string{"GEMINI_API_KEY": "x"}}
	conf.Agents = map[string]config.Agent{"claude": {KeyCommand: "print-key", KeyEvery: config.Duration(time.Minute)}, "mine": {Command: "x", Provider: "claude"}}
	all := Agents{Conf: conf}
	for name, want := range map[string]string{
		"claude": "agents.claude.key_command", "mine": "agents.claude.key_command", "gemini": "GEMINI_API_KEY from .env",
	} {
		a, err := all.LoggedIn(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := all.KeyFrom(a); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if k := all.keyCommand("claude"); k.every != time.Minute {
		t.Errorf("got the key every %s, want 1m", k.every)
	}
	if got := (Agents{Conf: &config.Loaded{}}).KeyFrom(agent.Agent{Provider: agent.Provider{KeyVar: "ABSENT_KEY"}}); got != "" {
		t.Errorf("key that nothing provides: got %q, want none", got)
	}
}
