package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/state"
	"abl/roles/agent"
)

// checkSecrets returns an error if a setting would put a secret into a container.
func checkSecrets(conf *config.Loaded) error {
	keys := map[string]string{}
	for name, value := range conf.Dotenv {
		if redact.Holds(name, value) {
			keys[name] = value
		}
	}
	for _, kv := range os.Environ() {
		if name, value, _ := strings.Cut(kv, "="); redact.Named(name) && len(value) >= redact.Shortest {
			keys[name] = value
		}
	}
	return cmp.Or(conf.CheckSecrets(keys), conf.CheckCommands(keys))
}

// NeverCommitted returns the keys of providers and the random values of .env, by name, without those that
// commit.allow_secrets allows.
func (s Folder) NeverCommitted() map[string]string {
	secrets := map[string]string{}
	for name, value := range s.Conf.Dotenv {
		if redact.Random(value) {
			secrets[name] = value
		}
	}
	names := agent.KeyVars()
	for _, own := range s.Conf.Agents {
		names = append(names, own.Key)
	}
	for _, name := range names {
		if value, _ := s.Conf.Key(name); len(value) >= redact.Shortest {
			secrets[name] = value
		}
	}
	for _, name := range s.Conf.Commit.AllowSecrets {
		delete(secrets, name)
	}
	return secrets
}

// EnvIgnored reports in text whether git ignores .env. It fails if the project is in a repository that does
// not ignore it.
func EnvIgnored(ctx context.Context, p state.Project) (text string, err error) {
	if _, err := os.Stat(p.Env()); err != nil {
		return "does not exist", nil
	}
	said, err := proc.AskGit(ctx, p.Root, "check-ignore", ".env")
	ended, is := errors.AsType[*exec.ExitError](err)
	switch {
	case is && ended.ExitCode() == 1:
		text, hint := "not ignored by git", "add a line .env to .gitignore"
		switch tracked, err := proc.AskGit(ctx, p.Root, "ls-files", ".env"); {
		case tracked == ".env":
			text, hint = "tracked by git", "git rm --cached .env; if it was ever pushed, replace the keys"
		case tracked != "" || err != nil:
			text += "; cannot read git's index: " + cmp.Or(tracked, fmt.Sprint(err))
		}
		return "", exit.With(exit.Usage, errors.New(text), hint)
	case err != nil:
		return fmt.Sprintf("unchecked: %v %s", err, said), nil
	case said != "":
		return "ignored by git", nil
	}
	return "not in a git repository", nil
}
