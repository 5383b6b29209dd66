package images

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRegistryBaseGoesFirst(t *testing.T) {
	s := seen{recipe: "r", labels: map[string]map[string]string{
		"abl/base:1":  {labelRecipe: "r", labelBase: "abl/base:1", labelOrigin: fromMirror},
		"abl/base:2":  {labelRecipe: "r", labelBase: "abl/base:2", labelOrigin: "debian@sha256:x"},
		"abl/base:3":  {labelRecipe: "r", labelBase: "abl/base:3", labelOrigin: fromMirror},
		"abl/base:9":  {labelRecipe: "other", labelBase: "abl/base:9", labelOrigin: "debian@sha256:y"},
		"abl/tools:4": {LabelImage: "tools"},
	}}
	if ref, origin, ok := s.base(); !ok || ref != "abl/base:2" || origin != "debian@sha256:x" {
		t.Errorf("base: got %q from %q, found %v, want abl/base:2 from debian@sha256:x", ref, origin, ok)
	}
}

// Without a registry a base is built on the Debian that scripts/base.sh imported.
func TestBaseOnImportedDebian(t *testing.T) {
	e := newFake()
	e.digest = "" // no registry
	e.images[mirrorBase] = map[string]string{LabelImage: "debian"}
	m := &Maker{Engine: e, Env: environ()}
	s, err := m.look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ref, labels, err := m.makeBase(t.Context(), s)
	if err != nil || e.pulls != 1 || e.args[ref]["ABL_IMAGE"] != mirrorBase || labels[labelOrigin] != fromMirror {
		t.Errorf("got base %q on %q with labels %v after %d pulls: %v, want one on %q",
			ref, e.args[ref]["ABL_IMAGE"], labels, e.pulls, err, mirrorBase)
	}
}

// slowRegistry sends progress lines at an interval, and after some of them stops or ends.
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

func TestPullGivesUpOnlyOnSilentRegistry(t *testing.T) {
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
				_, err := (&Maker{Engine: &r, Env: environ()}).pull(t.Context())
				if !errors.Is(err, c.err) || time.Since(begun) != c.takes {
					t.Errorf("got %v after %s, want %v after %s", err, time.Since(begun), c.err, c.takes)
				}
			})
		})
	}
}
