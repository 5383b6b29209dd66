package commit

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/dotenv"
	"abl/internal/redact"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/guard"
	"abl/orchestrator/ledger"
	"abl/orchestrator/pricelist"
)

// session is one call of the program in one project.
type session struct {
	in      *cli.Input
	self    string // what the person calls the program: code-commit, or abl code-commit
	root    string
	profile codecommit.Profile
	logs    string            // as the person gave it
	env     map[string]string // of .env
	key     string            // of the provider, once it was found
	known   *redact.Redactor  // of all secrets, once the key was found
	keys    *redact.Redactor  // of the providers' keys among them
	began   time.Time
	warned  []string // of .env
	speak   sync.Mutex
}

func open(in *cli.Input) (*session, error) {
	root, err := filepath.Abs(cmp.Or(in.String("project"), "."))
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	s := &session{in: in, root: root, began: time.Now(), logs: cmp.Or(in.String("log-dir"), "logs")}
	if s.profile, err = codecommit.ProfileOf(cmp.Or(in.String("protocol"), codecommit.V2)); err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	if dir, _ := s.logDir(); filepath.Clean(dir) == root {
		return nil, cli.Usagef("--log-dir must not be the project's folder itself")
	}
	vars, warnings, err := dotenv.Read(filepath.Join(root, ".env"))
	if err == nil {
		s.env = vars
		secrets, _ := redact.Secrets(vars, true)
		in.Outlet.Hide(secrets...)
		for _, w := range warnings {
			in.Warn(w)
		}
		s.warned = warnings
	} else if _, gone := os.Lstat(filepath.Join(root, ".env")); gone == nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	return s, nil
}

// logDir is where log folders are made, and rel the same below the project, ""
// when it is elsewhere.
func (s *session) logDir() (dir, rel string) {
	dir = s.logs
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.root, dir)
	}
	if r, err := filepath.Rel(s.root, dir); err == nil && filepath.IsLocal(r) && r != "." {
		rel = filepath.ToSlash(r)
	}
	return dir, rel
}

// guard is what protects the project's files, and the same in words.
func (s *session) guard(ctx context.Context) (codecommit.Guard, []string, error) {
	_, logs := s.logDir()
	if s.profile.Name == codecommit.V1 {
		g := guard.NewV1(s.root, logs)
		return g, g.List(), nil
	}
	g, err := guard.New(ctx, s.root, logs)
	if err != nil {
		return nil, nil, exit.With(exit.Usage, err, "")
	}
	return g, g.List(), nil
}

func (s *session) printProtected(ctx context.Context) error {
	_, list, err := s.guard(ctx)
	if err != nil {
		return err
	}
	if s.in.Bool("json") {
		return s.in.JSON(map[string]any{"protocol": s.profile.Name, "protected": list})
	}
	for _, what := range list {
		fmt.Fprintln(s.in.Stdout, what)
	}
	return nil
}

// say tells progress; calls may come from several sides.
func (s *session) say(text string) {
	s.speak.Lock()
	defer s.speak.Unlock()
	s.in.Say("%s", text)
}

// wait says now and then that something still goes on.
func (s *session) wait(what string) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	began := time.Now()
	go func() {
		defer close(ended)
		for pause := 10 * time.Second; ; pause = min(2*pause, time.Minute) {
			timer := time.NewTimer(pause)
			select {
			case <-done:
				timer.Stop()
				return
			case <-timer.C:
				s.say(fmt.Sprintf("still waiting for %s, %s by now", what, time.Since(began).Round(time.Second)))
			}
		}
	}()
	return func() { close(done); <-ended }
}

// ledger is where calls are entered.
func (s *session) ledger() *ledger.Ledger {
	dir, _ := s.logDir()
	return ledger.Open(filepath.Join(dir, "tokens.csv"))
}

// price is the cost_usd of a row by abl's own list.
func price(r ledger.Row) string {
	list, err := pricelist.Default()
	if err != nil {
		return ledger.Cost(r)
	}
	p, known := list.At(r.Model, r.When())
	if !known || r.Source == ledger.Nobody {
		return ledger.Cost(r)
	}
	usd, known := p.OfMany(r.Count)
	if !known {
		return ledger.Cost(r)
	}
	return usd.String()
}
