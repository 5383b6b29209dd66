package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// preflight finds what keeps the phase from running, as far as looking tells:
// until it is through, nothing of the project's is locked, written, made or
// started. An engine that abl does not know yet has to show its networks.
func (r *Run) preflight(ctx context.Context, again bool) error {
	f, err := r.State()
	if err != nil {
		return err
	}
	if a, err := orchestrator.Admit(f, r.Specs(), r.phase, again); err != nil || !a.Go {
		return err
	}
	if err := cmp.Or(r.CheckCaps(), r.checkPlayers(), r.CheckLedger(), r.CheckImages()); err != nil {
		return err
	}
	if f := Ignored(ctx, r.Paths); !f.OK { // .env is on its way to others
		r.In.Warn(fmt.Sprintf(".env is %s: %s", f.Text, f.Hint))
	}
	_, err = r.Networks(ctx)
	return err
}

// checkPlayers wants, for each role, its agent, its prompt and its key.
func (s *Project) checkPlayers() error {
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if err != nil {
			return err
		}
		if vars := p.Agent.Provider; vars.API != "" {
			if _, from := s.Conf.Key(vars.KeyVar); from == "" {
				return exit.With(exit.Usage, fmt.Errorf("cannot find %s", vars.KeyVar), fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", vars.KeyVar))
			}
			raw, _ := s.Conf.Key(vars.BaseVar)
			if _, _, err := environment.Override(vars, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckLedger refuses a tokens.csv that is no ledger; what can be repaired is
// repaired when the phase starts.
func (s *Project) CheckLedger() error {
	return ledger.Open(s.Paths.Ledger()).Scan(func(ledger.Row) {}, func(int, string) {})
}

// Networks learns, once a run, how the engine keeps networks apart.
func (s *Project) Networks(ctx context.Context) (*roles.Net, error) {
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return nil, exit.OnEngine(err)
	}
	if s.net == nil {
		prober := environment.Prober{
			Engine: eng, Info: info, Pool: s.Conf.Network.Pool, CACert: s.In.String("ca-cert"), Offline: s.In.Bool("offline"),
		}
		_, net, nerr := prober.Networks(ctx, s.In.Bool(cli.WeakFlag))
		if err = nerr; err == nil {
			s.net = &net
		}
	}
	return s.net, exit.OnEngine(errors.Join(err, eng.Close()))
}

// tidyAtRest removes what a run that was killed after its last save has left:
// boxes where an engine answers, for there is nothing else to ask one for, and
// what is lent.
func (r *Run) tidyAtRest(ctx context.Context) error {
	eng, _, err := environment.Connect(ctx)
	if err == nil {
		_, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: r.file.Project}, nil)
		err = errors.Join(exit.OnEngine(err), eng.Close())
		if err != nil {
			return err
		}
	}
	return r.GiveBack(r.file, r.out)
}

// weak is why the networks of this run are not proven; "" when they are.
func (s *Project) weak() string {
	if s.net == nil {
		return ""
	}
	return s.net.Weak
}

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
	return cmp.Or(conf.CheckSecrets(conf.Dotenv), conf.CheckSecrets(keys), conf.CheckCommands(keys))
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
		if value, _ := s.Conf.Key(name); len(value) >= redact.Shortest {
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
