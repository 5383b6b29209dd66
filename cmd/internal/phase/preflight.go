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
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// admit reads the project's state, specs and players, which the whole run uses, and decides whether the phase
// may run. It fails if something that the run needs is missing. It locks, writes and starts nothing.
func (r *Run) admit(ctx context.Context, again bool) (a orchestrator.Admission, err error) {
	if r.file, err = r.State(); err != nil {
		return a, err
	}
	r.specs, r.asked = r.Specs(), r.Project.asked(again)
	if a, err = orchestrator.Admit(r.file, r.specs, r.phase, r.asked); err != nil || !a.Go {
		return a, err
	}
	if r.players, err = r.Players(); err != nil {
		return a, err
	}
	if err = cmp.Or(r.CheckCaps(r.players), r.checkKeys(r.players), r.CheckLedger(), r.CheckImages()); err != nil {
		return a, err
	}
	if f := Ignored(ctx, r.Paths); !f.OK {
		r.In.Warn(fmt.Sprintf(".env is %s: %s", f.Text, f.Hint))
	}
	eng, _, err := environment.Connect(ctx)
	if err == nil {
		err = eng.Close()
	}
	return a, exit.OnEngine(err)
}

// admitAndLock decides whether the phase may run, and locks the project. It decides again if another abl changed the
// state meanwhile.
func (r *Run) admitAndLock(ctx context.Context, again bool) (orchestrator.Admission, error) {
	was, _ := os.Stat(r.Paths.State()) // admit reports the error
	a, err := r.admit(ctx, again)
	if err != nil {
		return a, err
	}
	failpoint.Here("lock.before")
	if _, err := r.Lock(); err != nil {
		return a, err
	}
	failpoint.Here("lock.taken")
	if is, _ := os.Stat(r.Paths.State()); unchanged(was, is) {
		return a, nil
	}
	return r.admit(ctx, again)
}

// unchanged reports whether a file that is only ever replaced is still the same; nil means that it does not
// exist.
func unchanged(was, is os.FileInfo) bool {
	if was == nil || is == nil {
		return was == is
	}
	return os.SameFile(was, is) && was.ModTime().Equal(is.ModTime())
}

// asked returns how the user runs a phase, with a hash of the settings whose change begins a new round.
// Budgets, prices, notifications and publishing are not among them.
func (s Folder) asked(again bool) orchestrator.Asked {
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
	if err != nil { // reading the prompts reports the error
		return orchestrator.Asked{Again: again}
	}
	return orchestrator.Asked{Again: again, Settings: hex.EncodeToString(h.Sum(nil))}
}

// checkKeys returns an error if a player has no key, or an invalid address of its provider.
func (s Folder) checkKeys(players map[string]orchestrator.Player) error {
	for _, role := range roles.Both() {
		p := players[role.Name]
		if _, found := s.Key(p); !found {
			return environment.Missing(p.Agent.Provider)
		}
		if _, _, err := environment.Override(p.Agent.Provider, s.Conf); err != nil {
			return err
		}
	}
	return nil
}

// CheckLedger returns an error if tokens.csv is not a ledger. A phase repairs smaller damage when it starts.
func (s Folder) CheckLedger() error {
	return ledger.Open(s.Paths.Ledger()).Scan(func(ledger.Row) {}, func(int, string) {})
}

// options returns the options of every environment of the project.
func (s *Project) options() environment.Options {
	return environment.Options{
		Project: s.Paths,
		Root:    s.Paths.Root,
		Conf:    s.Conf,
		Safe:    s.In.Safe,
		CACert:  s.In.String("ca-cert"),
		Offline: s.In.Bool("offline"),
		Weak:    s.In.Bool(cli.WeakFlag),
	}
}

// tidyAtRest cleans up after a run that was killed after its last save. It removes containers, unless the
// engine is away, and returns lent workspaces.
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

// neverCommitted returns the keys of providers and the random values of .env, by name, without those that
// commit.allow_secrets allows.
func (s Folder) neverCommitted() map[string]string {
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

// Finding is the result of a check.
type Finding struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Hint string `json:"hint,omitempty"`
}

// Ignored checks that git ignores .env, if the project is in a repository.
func Ignored(ctx context.Context, p state.Project) Finding {
	f := Finding{What: ".env", OK: true, Text: "does not exist"}
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
			f.Text, f.Hint = "tracked by git", "git rm --cached .env; if it was ever pushed, replace the keys"
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
