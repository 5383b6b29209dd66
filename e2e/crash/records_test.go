package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/testing/play"
)

// damages lists the ways in which a power cut, a full disk or a user damages a file.
var damages = []struct {
	name string
	do   func(path string) error
}{
	{"is empty", func(path string) error { return os.Truncate(path, 0) }},
	{"is cut in half", func(path string) error {
		fi, err := os.Stat(path)
		return errors.Join(err, os.Truncate(path, fi.Size()/2))
	}},
	{"is zeros", func(path string) error { return errors.Join(os.Truncate(path, 0), os.Truncate(path, 4096)) }},
	{"is null", func(path string) error { return os.WriteFile(path, []byte("null\n"), 0o644) }},
	{"is too large", func(path string) error { return os.Truncate(path, 1<<30) }},
	{"is a directory", func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o755)) }},
}

// resting lists the places at which the record of a call is damaged, with the visit, counted from
// 0.
var resting = []string{
	"call.intent=kill", "call.started=kill", "call.ended=kill", "call.outcome=kill", "ledger.after=kill", "commit.before=kill",
	"call.started=1*off->kill", "call.outcome=1*off->kill", "judge.decided=kill", "judge.written=kill", "replay.ready=kill",
	"call.started=2*off->kill", "judge.written=1*off->kill",
}

// records returns the JSON files in the records of calls.
func (p *plant) records() (names []string) {
	p.Helper()
	err := filepath.WalkDir(filepath.Join(p.Dir, ".abl/logs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(path, ".json") && !strings.Contains(path, "/in/") {
			rel, _ := filepath.Rel(p.Dir, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return names
}

// killedAt returns a plant whose supervisor was killed at a place. runs counts the calls that the
// engine completed, by name.
func killedAt(t *testing.T, points string) (p *plant, runs func() map[string]int) {
	t.Helper()
	var mu sync.Mutex
	all := map[string]int{}
	p = newPlant(t)
	p.made.Worked = func(b sandbox.ContainerConfig) {
		mu.Lock()
		defer mu.Unlock()
		if b.Labels[sandbox.LabelKind] == "role" {
			all[b.Labels[sandbox.LabelCall]]++
		}
	}
	out, err := p.supervisor(points).CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), syscall.SIGKILL.String()) {
		t.Fatalf("end of the supervisor: got %v, want %v: %s", err, syscall.SIGKILL, out)
	}
	return p, func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(all)
	}
}

// A damaged file of a record does not stop the phase or change the verdict: the phase passes, a
// call with a valid outcome is not repeated, and each call that ran has a row in the ledger.
func TestDamagedRecords(t *testing.T) {
	_, _, _ = expected(t)
	places, calls := resting, []string{"intent.json", "outcome.json", "history.json", "boundary.json"}
	if testing.Short() {
		places, calls = []string{"judge.written=kill"}, calls[:2]
	}
	nth := 0
	for _, points := range places {
		p, _ := killedAt(t, points)
		for _, name := range p.records() {
			form := damages[nth%len(damages)]
			nth++
			t.Run(points+"/"+filepath.Base(filepath.Dir(name))+"/"+filepath.Base(name)+" "+form.name, func(t *testing.T) {
				t.Parallel()
				damaged(t, points, name, form.do)
			})
		}
	}
	for _, form := range damages {
		for _, name := range calls {
			t.Run(form.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				damaged(t, "ledger.before=kill", ".abl/logs/calls/p1-build-1.1/"+name, form.do)
			})
		}
	}
}

func damaged(t *testing.T, points, name string, do func(path string) error) {
	p, runs := killedAt(t, points)
	path := filepath.Join(p.Dir, name)
	call := filepath.Base(filepath.Dir(name))
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "outcome.json"))
	whole := err == nil && filepath.Base(name) != "outcome.json"
	if err := do(path); errors.Is(err, fs.ErrNotExist) {
		t.Skip("this run had no such file")
	} else if err != nil {
		t.Fatal(err)
	}
	p.runToEnd("")
	rows := p.Read(".abl/logs/tokens.csv")
	var again []string
	for key, times := range runs() {
		if times > 1 {
			t.Errorf("call %s: got %d runs, want 1", key, times)
		}
		if !strings.Contains(rows, ","+key+",") {
			t.Errorf("call %s, which ran: got no row, want one in\n%s", key, rows)
		}
		if !strings.HasSuffix(key, ".1") {
			again = append(again, key)
		}
	}
	slices.Sort(again)
	if most := 1; len(again) > most || whole && len(again) > 0 && strings.HasPrefix(again[0], call[:max(len(call)-1, 0)]) {
		t.Errorf("got repeated calls %v, want none", again)
	}
	phase, err := state.Load(filepath.Join(p.Dir, ".abl/state.json"))
	if err != nil || phase.Phase(1).Status != state.Passed {
		t.Errorf("state.json: got %v, error %v, want a passed phase", phase, err)
	}
}

// A damaged file is renamed and reported, and the usage of its call does not count as zero.
func TestDamagedOutcomeIsSetAside(t *testing.T) {
	p := play.NewPlant(t)
	p.Easy = true
	var notes []string
	const record = ".abl/logs/calls/p1-build-1.1/"
	once := true
	phase := play.Phase{Root: p.Dir, Engine: p.Engine, Out: state.Func(func(e state.Event) {
		if e.Kind == state.Note {
			notes = append(notes, e.Text)
		}
		if e.Kind == state.Commit && once {
			once = false
			if err := os.WriteFile(filepath.Join(p.Dir, record+"outcome.json"), []byte(`{"class": "do`), 0o644); err != nil {
				t.Error(err)
			}
		}
	})}
	if r, err := phase.Play(t.Context()); err != nil || r.Status != state.Passed {
		t.Fatalf("the phase: got status %s, error %v, want %s", r.Status, err, state.Passed)
	}
	kept, err := os.ReadFile(filepath.Join(p.Dir, record+"outcome.json.damaged"))
	if err != nil || string(kept) != `{"class": "do` {
		t.Errorf("outcome.json.damaged: got %q, error %v, want the damaged record", kept, err)
	}
	want := fmt.Sprintf("cannot read the record %q", filepath.Join(p.Dir, record+"outcome.json"))
	if !slices.ContainsFunc(notes, func(n string) bool {
		return strings.HasPrefix(n, want) &&
			strings.Contains(n, "outcome.json.damaged")
	}) {
		t.Errorf("got notes %q, want one that begins with %s", notes, want)
	}
}

// A power cut removes committed content from the work tree. If the boot id differs from the
// recorded one, abl restores the content. Otherwise the change is the user's.
func TestCommittedFileIsLost(t *testing.T) {
	want, _, _ := expected(t)
	for name, booted := range map[string]bool{"after a power cut": true, "by hand": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := killedAt(t, "commit.after=kill")
			if err := os.Truncate(filepath.Join(p.Dir, "src/word.txt"), 0); err != nil {
				t.Fatal(err)
			}
			if !booted {
				out, err := p.supervisor("").CombinedOutput()
				if err == nil || !strings.Contains(string(out), "the source was changed by hand") {
					t.Errorf("the next run: got error %v, output %s, want an error with %q", err, out,
						"the source was changed by hand")
				}
				return
			}
			p.Write(".abl/logs/boot", "of another start")
			p.runToEnd("")
			checkSame(t, want, p.print())
		})
	}
}
