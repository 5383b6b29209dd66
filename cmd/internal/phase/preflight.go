package phase

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/proc"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/spec"
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
	if a, err := orchestrator.Admit(f, r.Specs(), r.phase, r.asked(again)); err != nil || !a.Go {
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

// asked is how the user runs a phase. What only limits, pays for or tells of a run is not among the
// settings that begin a new round.
func (s *Project) asked(again bool) orchestrator.Asked {
	conf := s.Conf.Config
	conf.Budget, conf.Prices, conf.Notify, conf.Publish = config.Budget{}, config.Prices{}, config.Notify{}, config.Publish{}
	h := sha256.New()
	data, err := json.Marshal(conf)
	fmt.Fprintf(h, "%s\n", data)
	for _, path := range []string{s.Paths.Prompt(roles.Builder.Name), s.Paths.Prompt(roles.Verifier.Name), s.Paths.Description()} {
		text, rerr := hostfs.Read(s.Paths.Root, s.Paths.Rel(path), spec.MaxBytes)
		if !errors.Is(rerr, hostfs.ErrAbsent) {
			err = errors.Join(err, rerr)
		}
		fmt.Fprintf(h, "%d %s\n", len(text), text)
	}
	if err != nil { // of what is wrong with it the user hears elsewhere
		return orchestrator.Asked{Again: again}
	}
	return orchestrator.Asked{Again: again, Settings: hex.EncodeToString(h.Sum(nil))}
}

// checkPlayers wants, for each role, its agent, its prompt and its key.
func (s *Project) checkPlayers() error {
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if err != nil {
			return err
		}
		vars := p.Agent.Provider
		if _, found := s.Key(p); !found {
			return environment.Missing(vars)
		}
		if _, _, err := environment.Override(vars, s.Conf); err != nil {
			return err
		}
	}
	return nil
}

// CheckLedger refuses a tokens.csv that is no ledger; what can be repaired is
// repaired when the phase starts.
func (s *Project) CheckLedger() error {
	return ledger.Open(s.Paths.Ledger()).Scan(func(ledger.Row) {}, func(int, string) {})
}

// options are those of every environment of the project's.
func (s *Project) options() environment.Options {
	return environment.Options{
		Project: s.Paths, Root: s.Paths.Root, Conf: s.Conf, Net: s.net, Safe: s.In.Safe,
		CACert: s.In.String("ca-cert"), Offline: s.In.Bool("offline"), Weak: s.In.Bool(cli.WeakFlag),
	}
}

// Networks learns, once a run, how the engine keeps networks apart.
func (s *Project) Networks(ctx context.Context) (*roles.Net, error) {
	if s.net != nil {
		return s.net, nil
	}
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return nil, exit.OnEngine(err)
	}
	_, net, err := s.options().Networks(ctx, eng, info, false)
	if err == nil {
		s.net = &net
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
		_, eerr := environment.SweepEarlier(ctx, eng, r.Paths.State(), r.file.Project)
		err = errors.Join(exit.OnEngine(errors.Join(err, eerr)), eng.Close())
		if err != nil {
			return err
		}
	}
	return r.GiveBack(r.file, r.out)
}

// checkSecrets refuses settings that would carry a secret into a container.
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

// neverCommitted are the keys of providers and what looks random in .env, by name, but
// for what the person allows.
func (s *Project) neverCommitted() map[string]string {
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
	f := Finding{What: ".env", OK: true, Text: "there is none"}
	if _, err := os.Stat(p.Env()); err != nil {
		return f
	}
	f.Text = "not in a git repository"
	said, err := proc.AskGit(ctx, p.Root, "check-ignore", ".env")
	ended, is := errors.AsType[*exec.ExitError](err)
	switch {
	case is && ended.ExitCode() == 1:
		f.OK, f.Text, f.Hint = false, "not ignored by git", "add a line .env to .gitignore"
		switch tracked, err := proc.AskGit(ctx, p.Root, "ls-files", ".env"); {
		case tracked == ".env":
			f.Text, f.Hint = "in git's index", "git rm --cached .env, and if it was ever pushed, new keys"
		case tracked != "" || err != nil:
			f.Text += "; cannot read git's index: " + cmp.Or(tracked, fmt.Sprint(err))
		}
	case err != nil:
		f.Text = fmt.Sprintf("unchecked: %v %s", err, said)
	case said != "":
		f.Text = "ignored by git"
	}
	return f
}
