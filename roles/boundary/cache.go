package boundary

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/sandbox"
)

// method names how abl makes and probes networks; a change of it makes what was
// proven before worth nothing.
const method = "3"

// age is how long a proof is taken for true.
const age = 24 * time.Hour

// Result is what the probe of an engine's networks came to.
type Result struct {
	At     time.Time     `json:"at"`
	Apart  sandbox.Apart `json:"apart"` // how networks are kept apart
	Proof  sandbox.Proof `json:"proof"`
	Cached bool          `json:"-"` // by an earlier run
}

// Err is nil when the engine's networks are what abl promises.
func (r Result) Err() error { return r.Proof.Err() }

// Probe proves an engine's kind of network. It tries the ways to keep one apart
// from the host in their order and returns the first that holds, or else what
// came of the first. The error is that it could not be tried.
func (p Prober) Probe(ctx context.Context, ways ...sandbox.Apart) (Result, error) {
	var first Result
	for i, apart := range ways {
		proof, err := p.Try(ctx, apart)
		if err != nil {
			return first, fmt.Errorf("cannot probe the engine's networks: %w", err)
		}
		r := Result{At: time.Now().UTC(), Apart: apart, Proof: proof}
		if r.Err() == nil || p.Away { // on another machine no way can be proven
			return r, nil
		}
		if i == 0 {
			first = r
		}
	}
	return first, nil
}

// Cache keeps proofs that held, in a directory of the person's; an empty one
// keeps nothing.
type Cache string

// UserCache is where the person's programs keep what can be made again.
func UserCache() Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return Cache(filepath.Join(dir, "abl"))
}

// name is the file of an engine. One that abl reached on its own machine is
// another when abl reaches it from elsewhere, where it cannot listen.
func (c Cache) name(info sandbox.Info) string {
	return "network-" + sum("%q %q %q %q %t %t", info.ID, info.Version, info.API, method, info.Local, info.Near) + ".json"
}

// get returns what is known of an engine. Whatever cannot be read, is too old or not
// a proof is as if it were not there.
func (c Cache) get(info sandbox.Info) (r Result, ok bool) {
	if c == "" {
		return r, false
	}
	data, err := hostfs.Read(string(c), c.name(info), maxLine)
	if err != nil || json.Unmarshal(data, &r) != nil {
		return Result{}, false
	}
	r.Cached = true
	old := time.Since(r.At)
	return r, r.Err() == nil && old >= 0 && old < age
}

// put keeps a proof that held.
func (c Cache) put(info sandbox.Info, r Result) error {
	if r.Err() != nil || c == "" {
		return nil
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return hostfs.Write(filepath.Join(string(c), c.name(info)), append(data, '\n'), 0o600)
}

// Network returns the proof of the engine's networks: the one that is known, or
// a new one where none is, or where fresh asks for it. Of several runs at a time
// one probes and the others wait for what it finds. The probe is given an id that
// nobody else has meanwhile, and that is the same the next time, so that it finds
// what a killed one left.
func (c Cache) Network(ctx context.Context, fresh bool, info sandbox.Info, probe func(ctx context.Context, id string) (Result, error)) (Result, error) {
	if info.ID == "" { // nobody knows which engine it is
		c = ""
	}
	if r, ok := c.get(info); ok && !fresh {
		return r, nil
	}
	id, unlock, err := c.lock(ctx, info)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	if r, ok := c.get(info); ok && !fresh {
		return r, nil
	}
	r, err := probe(ctx, id)
	if err == nil {
		_ = c.put(info, r) // else the next run probes again
	}
	return r, err
}

// lock waits for its turn. Where there is no place to keep anything, each run
// is by itself.
func (c Cache) lock(ctx context.Context, info sandbox.Info) (id string, unlock func(), err error) {
	path := filepath.Join(string(c), c.name(info)+".lock")
	id, unlock = "probe-"+strings.ToLower(rand.Text()[:12]), func() {}
	if c == "" || os.MkdirAll(string(c), 0o700) != nil {
		return id, unlock, nil
	}
	for {
		free, err := hostfs.Lock(path)
		switch {
		case err == nil:
			host, _ := os.Hostname() // a folder may be shared between machines
			var at unix.Stat_t
			_ = unix.Stat(string(c), &at) // and be another in a container, under the same name
			id = "probe-" + sum("%q %q %d %d", host, path, at.Dev, at.Ino)
			return id, func() { _ = free() }, nil // the kernel frees it in any case
		case !errors.Is(err, hostfs.ErrHeld):
			return id, unlock, nil
		}
		if err := proc.Pause(ctx, 50*time.Millisecond); err != nil {
			return "", nil, err
		}
	}
}

// sum stands for what is written in a form.
func sum(form string, args ...any) string {
	all := sha256.Sum256(fmt.Appendf(nil, form, args...))
	return hex.EncodeToString(all[:8])
}
