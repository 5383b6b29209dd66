package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"abl/internal/proc"
	"abl/internal/redact"
	"abl/roles/agent"
)

// checkSecrets refuses settings that would carry a secret into a container.
func (s *session) checkSecrets() error {
	keys := map[string]string{}
	for name, value := range s.conf.Dotenv {
		if redact.Named(name) || redact.Looks(value) {
			keys[name] = value
		}
	}
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); redact.Named(name) && len(value) >= redact.Shortest {
			keys[name] = value
		}
	}
	for _, err := range []error{s.conf.CheckSecrets(s.conf.Dotenv), s.conf.CheckSecrets(keys), s.conf.CheckCommands(keys)} {
		if err != nil {
			return err
		}
	}
	return nil
}

// neverCommitted are the keys of providers and what looks random in .env, by name, but
// for what the person allows.
func (s *session) neverCommitted() map[string]string {
	secrets := map[string]string{}
	for name, value := range s.conf.Dotenv {
		if redact.Random(value) {
			secrets[name] = value
		}
	}
	for _, name := range agent.KeyVars() {
		if value, _ := s.key(name); len(value) >= redact.Shortest {
			secrets[name] = value
		}
	}
	for _, name := range s.conf.Commit.AllowSecrets {
		delete(secrets, name)
	}
	return secrets
}

// warnShared warns of a .env that is on its way to others.
func (s *session) warnShared(ctx context.Context) {
	if f := s.checkIgnored(ctx); !f.OK {
		s.in.Warn(fmt.Sprintf(".env is %s: %s", f.Text, f.Hint))
	}
}

// checkIgnored asks git, when there is a repository around .env, whether the
// file stays out of it.
func (s *session) checkIgnored(ctx context.Context) finding {
	f := finding{What: ".env", OK: true, Text: "not there, or not in a git repository"}
	if _, err := os.Stat(s.project.Env()); err != nil {
		return f
	}
	said, err := s.git(ctx, "check-ignore", "-q", ".env")
	var ended *exec.ExitError
	switch {
	case err == nil:
		f.Text = "ignored by git"
	case errors.As(err, &ended) && ended.ExitCode() == 1:
		if _, err := s.git(ctx, "ls-files", "--error-unmatch", ".env"); err == nil {
			return finding{What: ".env", Text: "in git's index", Hint: "git rm --cached .env, and if it was ever pushed, new keys"}
		}
		return finding{What: ".env", Text: "not ignored by git", Hint: "add a line .env to .gitignore"}
	case errors.As(err, &ended) && !strings.Contains(said, "not a git repository"):
		f.Text = "unchecked: " + said
	case errors.Is(err, exec.ErrNotFound):
		f.Text = "unchecked: git is not installed"
	}
	return f
}

// git asks the person's git about the repository that the project is in.
func (s *session) git(ctx context.Context, args ...string) (said string, err error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := proc.Command(ctx, "git", append([]string{"-C", s.project.Root}, args...)...)
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
