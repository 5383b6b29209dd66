package phase

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"abl/internal/config"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/roles/agent"
)

// checkSecrets refuses settings that would carry a secret into a container.
func checkSecrets(conf *config.Loaded) error {
	keys := map[string]string{}
	for name, value := range conf.Dotenv {
		if redact.Named(name) || redact.Looks(value) {
			keys[name] = value
		}
	}
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); redact.Named(name) && len(value) >= redact.Shortest {
			keys[name] = value
		}
	}
	for _, err := range []error{conf.CheckSecrets(conf.Dotenv), conf.CheckSecrets(keys), conf.CheckCommands(keys)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// neverCommitted are the keys of providers and what looks random in .env, by name, but
// for what the person allows.
func (s *Project) neverCommitted() map[string]string {
	secrets := map[string]string{}
	for name, value := range s.Conf.Dotenv {
		if redact.Random(value) {
			secrets[name] = value
		}
	}
	for _, name := range agent.KeyVars() {
		if value, _ := s.Key(name); len(value) >= redact.Shortest {
			secrets[name] = value
		}
	}
	for _, name := range s.Conf.Commit.AllowSecrets {
		delete(secrets, name)
	}
	return secrets
}

// Finding is one thing that was looked at before a phase needs it.
type Finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Ignored asks git, when there is a repository around .env, whether the file stays
// out of it.
func Ignored(ctx context.Context, p state.Project) Finding {
	git := func(args ...string) (said string, err error) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		cmd := proc.Command(ctx, "git", append([]string{"-C", p.Root}, args...)...)
		cmd.Env = append(cmd.Env, "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	f := Finding{What: ".env", OK: true, Text: "not there, or not in a git repository"}
	if _, err := os.Stat(p.Env()); err != nil {
		return f
	}
	said, err := git("check-ignore", "-q", ".env")
	var ended *exec.ExitError
	switch {
	case err == nil:
		f.Text = "ignored by git"
	case errors.As(err, &ended) && ended.ExitCode() == 1:
		if _, err := git("ls-files", "--error-unmatch", ".env"); err == nil {
			return Finding{What: ".env", Text: "in git's index", Hint: "git rm --cached .env, and if it was ever pushed, new keys"}
		}
		return Finding{What: ".env", Text: "not ignored by git", Hint: "add a line .env to .gitignore"}
	case errors.As(err, &ended) && !strings.Contains(said, "not a git repository"):
		f.Text = "unchecked: " + said
	case errors.Is(err, exec.ErrNotFound):
		f.Text = "unchecked: git is not installed"
	}
	return f
}
