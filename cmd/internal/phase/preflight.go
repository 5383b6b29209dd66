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

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"
)

// admit reads the project's state, specs and players, which the whole run uses, and decides whether the phase
// may run. It fails if something that the run needs is missing. It locks, writes and starts nothing.
func (r *Run) admit(ctx context.Context, again bool) (a orchestrator.Admission, err error) {
	if r.file, err = r.State(); err != nil {
		return a, err
	}
	r.specs, r.asked = r.Specs(), askedOf(r.Folder, again)
	if a, err = orchestrator.Admit(r.file, r.specs, r.phase, r.asked); err != nil || !a.Go {
		return a, err
	}
	if r.players, err = r.Players(); err != nil {
		return a, err
	}
	if err = cmp.Or(r.CheckCaps(r.players), checkKeys(r.Folder, r.players), r.CheckLedger(), r.CheckImages()); err != nil {
		return a, err
	}
	if _, err := project.EnvIgnored(ctx, r.Paths); err != nil {
		r.In.Warn(fmt.Sprintf(".env is %v: %s", err, exit.Hint(err)))
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

// askedOf returns how the user runs a phase.
func askedOf(s project.Folder, again bool) orchestrator.Asked {
	files, err := config.Load(s.Paths.Root, os.LookupEnv, nil)
	if err != nil { // the settings are valid only with flags
		files = s.Conf
	}
	conf := s.Conf.Config
	conf.Remote = files.Remote // --remote does not change what a round does
	without, err1 := settingsHash(s.Paths, files.Config)
	with, err2 := settingsHash(s.Paths, conf)
	asked := orchestrator.Asked{Again: again, Settings: without}
	switch {
	case errors.Join(err1, err2) != nil: // reading the prompts reports the error
		asked.Settings = ""
	case with != without:
		asked.Settings += "+" + with
	}
	return asked
}

// settingsHash returns a hash of settings, prompts and description, whose change begins a new round. Budgets,
// prices, notifications and publishing are not part of it.
func settingsHash(p state.Project, conf config.Config) (string, error) {
	conf.Budget, conf.Prices, conf.Notify, conf.Publish = config.Budget{}, config.Prices{}, config.Notify{}, config.Publish{}
	h := sha256.New()
	data, err := json.Marshal(conf)
	fmt.Fprintf(h, "%s\n", data)
	for _, path := range []string{p.Prompt(roles.Builder.Name), p.Prompt(roles.Verifier.Name), p.Description()} {
		text, rerr := hostfs.Read(p.Root, p.Rel(path), spec.MaxBytes)
		if !errors.Is(rerr, hostfs.ErrAbsent) {
			err = errors.Join(err, rerr)
		}
		fmt.Fprintf(h, "%d %s\n", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil)), err
}

// checkKeys returns an error if a player has no key, or an invalid address of its provider.
func checkKeys(s project.Folder, players map[string]orchestrator.Player) error {
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

// tidyUp cleans up after a run that was killed after its last save. It removes containers, unless the
// engine is unavailable, and restores the owners of workspaces.
func (r *Run) tidyUp(ctx context.Context) error {
	eng, _, err := environment.Connect(ctx)
	if err == nil {
		_, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: r.file.Project}, nil)
		_, eerr := environment.SweepEarlier(ctx, eng, r.Paths.State(), r.file.Project)
		err = errors.Join(exit.OnEngine(errors.Join(err, eerr)), eng.Close())
		if err != nil {
			return err
		}
	}
	return RestoreOwners(r.Folder, r.file, r.out)
}
