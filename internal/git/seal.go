package git

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/state"
)

// steering is what in .git decides what a person's git runs and where it reads
// and writes, besides the hooks.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

const (
	maxSteering = 4 << 20 // bytes of a config or a hook
	maxInside   = 100_000 // files in a folder of .git
)

// Seal says what .git is like now: what steers git by its hash, and where the
// history stands. The index, objects, packs and logs are the person's git's
// own business, and so are the branches of remotes, which it fetches by itself.
// An error that Is ErrForeign names something that must not be there.
func (r *Repo) Seal() (s state.Seal, err error) {
	hooks, refs, err := r.ordinary()
	if err == nil {
		err = r.settled()
	}
	if err != nil {
		return s, err
	}
	s.Steering = map[string]string{}
	for _, name := range append(hooks, steering...) {
		if strings.HasSuffix(name, ".sample") {
			continue // git runs none
		}
		if err := hash(r.git, name, s.Steering); err != nil {
			return s, err
		}
	}
	s.History, err = r.history(refs)
	return s, err
}

func hash(d gitdir.Dir, name string, into map[string]string) error {
	data, err := hostfs.Read(d.Path, name, maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	if err != nil {
		return gitdir.Foreign("%q: %v: put back what git makes there", d.Path, err)
	}
	mode := "" // git runs a hook only when it is executable
	if info, err := os.Lstat(d.Join(name)); err == nil && info.Mode()&0o111 != 0 {
		mode = "+x"
	}
	sum := sha256.Sum256(data)
	into[name] = hex.EncodeToString(sum[:]) + mode
	return nil
}

// history is what HEAD and every ref name, the loose ones among them.
func (r *Repo) history(loose []string) (map[string]string, error) {
	refs, err := r.git.Packed()
	if err != nil {
		return nil, err
	}
	for _, name := range append(loose, "HEAD") {
		data, err := hostfs.Read(r.git.Path, name, maxSteering)
		switch {
		case err == nil:
			refs[name] = strings.TrimSpace(string(data))
		case !errors.Is(err, hostfs.ErrAbsent): // packed just now, say
			return nil, gitdir.Foreign("%q: %v: put back what git makes there", r.git.Path, err)
		}
	}
	maps.DeleteFunc(refs, func(name, _ string) bool {
		return strings.HasSuffix(name, ".lock") || strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
	})
	return refs, nil
}
