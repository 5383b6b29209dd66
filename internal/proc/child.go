package proc

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"abl/internal/redact"
)

// Command is exec.CommandContext with an environment that Env left.
func Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = Env(os.Environ())
	return cmd
}

// Env leaves out of an environment, given as NAME=value, the variables whose
// name says that they are secret, and those that repeat the value of one.
// Addresses of proxies stay, their passwords too: without them nothing is
// fetched where they are needed.
func Env(environ []string) []string {
	var secrets []string
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); redact.Named(name) && len(value) >= redact.Shortest {
			secrets = append(secrets, value)
		}
	}
	kept := make([]string, 0, len(environ))
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		if !redact.Named(name) && !slices.ContainsFunc(secrets, func(s string) bool { return strings.Contains(value, s) }) {
			kept = append(kept, kv)
		}
	}
	return kept
}
