package images

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWithSecurity(t *testing.T) {
	const mirror = "deb http://mirror.example/debian bookworm main\n"
	for list, want := range map[string]string{
		mirror: mirror + "deb http://mirror.example/debian bookworm-updates main\ndeb http://mirror.example/debian-security bookworm-security main\n",
		"deb http://mirror.example/copy bookworm main\n": "deb http://mirror.example/copy bookworm main\n",
		"# none\n": "# none\n",
		"deb-src http://x/debian bookworm main\n": "deb-src http://x/debian bookworm main\n",
		"deb": "deb",
	} {
		if got := withSecurity(list); got != want {
			t.Errorf("%q became %q, want %q", list, got, want)
		}
	}
}

func TestIsDebian(t *testing.T) {
	for release, want := range map[string]bool{
		"ID=debian\n": true, "NAME=x\nID=ubuntu\n": true, "ID=\"linuxmint\"\nID_LIKE=\"ubuntu debian\"\n": true,
		"ID=fedora\nID_LIKE=rhel\n": false, "": false, "VERSION_ID=debian": false, "ID=debianish": false,
	} {
		if got := isDebian(release); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
}

func TestRegistryBaseGoesFirst(t *testing.T) {
	s := seen{recipe: "r", labels: map[string]map[string]string{
		"abl/base:1":  {labelRecipe: "r", labelBase: "abl/base:1", labelOrigin: fromMirror},
		"abl/base:2":  {labelRecipe: "r", labelBase: "abl/base:2", labelOrigin: "debian@sha256:x"},
		"abl/base:3":  {labelRecipe: "r", labelBase: "abl/base:3", labelOrigin: fromMirror},
		"abl/base:9":  {labelRecipe: "other", labelBase: "abl/base:9", labelOrigin: "debian@sha256:y"},
		"abl/tools:4": {LabelImage: "tools"},
	}}
	if ref, origin, ok := s.base(); !ok || ref != "abl/base:2" || origin != "debian@sha256:x" {
		t.Errorf("base %q from %q, %v", ref, origin, ok)
	}
}

type closer struct {
	io.Reader
	closed int
}

func (c *closer) Close() error { c.closed++; return nil }

func TestEndingsReportAWriterThatFailed(t *testing.T) {
	broken := errors.New("tar: broken")
	from := &closer{Reader: strings.NewReader("half")}
	e := &endings{from: from, wait: func() error { return broken }}
	got, err := io.ReadAll(e)
	if string(got) != "half" || !errors.Is(err, broken) {
		t.Errorf("read %q, %v; want the writer's error in place of an end", got, err)
	}
	if err := e.close(); err != nil || from.closed != 1 {
		t.Errorf("second close: %v, closed %d times", err, from.closed)
	}
}

func TestRunKeepsWhatACommandSaid(t *testing.T) {
	var said []string
	m := &Maker{Out: func(s string) { said = append(said, s) }}
	err := m.run(t.Context(), "sh", "-c", "echo 'I: Retrieving libc6 2.36'; echo E: no mirror; exit 3")
	if err == nil || !strings.Contains(err.Error(), "Retrieving libc6 2.36 | E: no mirror") {
		t.Errorf("error %v", err)
	}
	if strings.Join(said, ",") != "base: E: no mirror" {
		t.Errorf("said %q", said)
	}
}

// slowRegistry speaks at a beat and falls silent, or ends, after some lines.
type slowRegistry struct {
	*fakeEngine
	beat  time.Duration
	lines int
	ends  bool
}

func (r *slowRegistry) Pull(ctx context.Context, _ string, progress func(string)) (string, error) {
	for range r.lines {
		select {
		case <-time.After(r.beat):
			progress("ab: Downloading")
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	if r.ends {
		return "debian@sha256:abc", nil
	}
	<-ctx.Done()
	return "", ctx.Err()
}

func TestASilentRegistryIsGivenUpAndASlowOneIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		registry slowRegistry
		takes    time.Duration
		err      error
	}{
		"silent from the start": {slowRegistry{}, firstSign, errSilent},
		"silent later":          {slowRegistry{beat: 5 * time.Second, lines: 3}, 15*time.Second + nextSign, errSilent},
		"too late":              {slowRegistry{beat: 20 * time.Second, lines: 1, ends: true}, firstSign, errSilent},
		"slow":                  {slowRegistry{beat: 14 * time.Second, lines: 100, ends: true}, 1400 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				r := c.registry
				r.fakeEngine = newFake()
				_, err := (&Maker{Engine: &r}).pull(t.Context())
				if !errors.Is(err, c.err) || time.Since(begun) != c.takes {
					t.Errorf("%v after %s, want %v after %s", err, time.Since(begun), c.err, c.takes)
				}
			})
		})
	}
}
