package environment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"abl/internal/gateway"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/roles/agent"
)

const (
	keyTime  = 30 * time.Second // time limit of agents.NAME.key_command
	keyEvery = 50 * time.Minute // Google's and Microsoft's tokens are valid for an hour
	keyAgain = time.Minute      // after a failure
	maxKey   = 16 << 10         // bytes that the command may print
)

// keyCommand is a command on this machine that prints a key.
type keyCommand struct {
	name  string // of the setting
	shell string
	dir   string
	every time.Duration
	safe  *redact.Sanitizer
	limit time.Duration
}

// keyCommand returns the command that prints an agent's key, nil without such a setting.
func (s Agents) keyCommand(name string) *keyCommand {
	name = s.provider(name)
	own := s.Conf.Agents[name]
	if own.KeyCommand == "" {
		return nil
	}
	k := &keyCommand{
		name:  "agents." + name + ".key_command",
		shell: own.KeyCommand,
		dir:   s.Root,
		every: keyEvery,
		limit: keyTime,
	}
	if own.KeyEvery > 0 {
		k.every = time.Duration(own.KeyEvery)
	}
	return k
}

// NoKey is what KeyFrom returns for a server without keys.
const NoKey = "not needed"

// KeyFrom returns where the key of an agent comes from, "" if it is missing.
func (s Agents) KeyFrom(a agent.Agent) string {
	if k := s.keyCommand(a.Name); k != nil {
		return k.name
	}
	if a.Provider.Own && a.Provider.KeyVar == "" {
		return NoKey
	}
	if _, from := s.Conf.Key(a.Provider.KeyVar); from != "" {
		return a.Provider.KeyVar + " from " + from
	}
	return ""
}

// run runs the command and returns the key. Its standard output is never shown.
func (k *keyCommand) run(ctx context.Context) (gateway.Secret, error) {
	late := fmt.Errorf("it took longer than %s", k.limit)
	ctx, cancel := context.WithTimeoutCause(ctx, k.limit, late)
	defer cancel()
	out, errs := proc.Head{Max: maxKey + 1}, proc.Head{Max: maxKey}
	cmd := proc.Command(context.WithoutCancel(ctx), "sh", "-c", k.shell) // proc stops it, with all that it started
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.dir, &out, &errs
	cmd.SysProcAttr, cmd.WaitDelay = proc.Leader(), time.Second
	runtime.LockOSThread() // proc.Leader applies to the thread
	defer runtime.UnlockOSThread()
	code, err := proc.Run(ctx, cmd, time.Second)
	key := strings.TrimSpace(out.Kept.String())
	switch {
	case err != nil:
	case code != 0:
		err = fmt.Errorf("exit code %d%s", code, k.lastLine(errs.Kept.String()))
	case key == "":
		err = errors.New("it printed no key" + k.lastLine(errs.Kept.String()))
	case len(key) > maxKey || strings.ContainsAny(key, "\r\n\x00"):
		err = fmt.Errorf("it printed more than one line or more than %d bytes, so the output is not a key", maxKey)
	}
	if err != nil {
		do := "run the command by hand in " + k.dir + ": it must print only the key to standard output"
		return "", &Error{Refused, do, fmt.Errorf("%s: %w", k.name, err)}
	}
	if k.safe != nil && len(key) >= redact.Shortest {
		k.safe.Hide(key)
	}
	return gateway.Secret(key), nil
}

// lastLine returns the last line of a command's standard error, after a colon.
func (k *keyCommand) lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		if k.safe != nil {
			last = k.safe.Line(last)
		}
		return ": " + last
	}
	return ""
}

// renew sends new keys to the gateway of a call until ctx ends. It returns the last failure unless
// a later renewal succeeded.
func (k *keyCommand) renew(ctx context.Context, container sidecar) (failure error) {
	for pause := k.every; proc.Pause(ctx, pause) == nil; {
		key, err := k.run(ctx)
		if err == nil {
			err = container.Renew(ctx, key)
		}
		pause = k.every
		if err != nil {
			pause = min(pause, keyAgain)
		}
		if ctx.Err() == nil {
			failure = err
		}
	}
	return failure
}
