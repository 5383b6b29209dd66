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

// method is the version of the way in which abl creates and probes networks. Proofs of another
// version are invalid.
const method = "3"

// age is how long a cached proof is valid.
const age = 24 * time.Hour

// Result is the result of probing an engine's networks.
type Result struct {
	At     time.Time     `json:"at"`
	Apart  sandbox.Apart `json:"apart"` // how networks are isolated
	Proof  sandbox.Proof `json:"proof"`
	Cached bool          `json:"-"` // made by an earlier run
}

// Err returns nil if the engine's networks are isolated as abl promises.
func (r Result) Err() error { return r.Proof.Err() }

// Probe tries methods to isolate a network from the host, in their order. It returns the first
// proof that holds, or else that of the first method. It fails if a method could not be tried.
func (p Prober) Probe(ctx context.Context, methods ...sandbox.Apart) (Result, error) {
	var first Result
	for i, apart := range methods {
		proof, err := p.Try(ctx, apart)
		if err != nil {
			return first, fmt.Errorf("cannot probe the engine's networks: %w", err)
		}
		r := Result{At: time.Now().UTC(), Apart: apart, Proof: proof}
		if r.Err() == nil || p.Away { // from another machine no method can be proven
			return r, nil
		}
		if i == 0 {
			first = r
		}
	}
	return first, nil
}

// Cache is the user's directory with valid proofs; "" disables caching.
type Cache string

// UserCache returns the cache in the user's cache directory.
func UserCache() Cache {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return Cache(filepath.Join(dir, "abl"))
}

// name returns the file name of an engine. An engine has another name if abl reaches it from
// another machine, where abl cannot listen.
func (c Cache) name(info sandbox.Info) string {
	return "network-" + sum("%q %q %q %q %t %t", info.ID, info.Version, info.API, method, info.Local, info.Near) + ".json"
}

// get returns the cached proof of an engine. A proof that is unreadable, invalid or too old counts
// as missing.
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

// put caches a proof that holds.
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

// Network returns the cached proof of the engine's networks. It calls probe without a cached proof
// or if fresh is true. If several abl run at the same time, one probes and the others wait for its
// result. The id for probe is unique at the time and the same the next time, so that a probe
// removes what a killed one left.
func (c Cache) Network(ctx context.Context, fresh bool, info sandbox.Info, probe func(ctx context.Context, id string) (Result, error)) (Result, error) {
	if info.ID == "" { // an unknown engine
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
		_ = c.put(info, r) // without it the next run probes again
	}
	return r, err
}

// lock waits for the cache's lock and returns an id for the probe. Without a cache directory it
// returns a random id immediately.
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
			host, _ := os.Hostname() // several machines may share a folder
			var at unix.Stat_t
			_ = unix.Stat(string(c), &at) // containers may have different folders of the same name
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

// sum returns a short hash of a formatted text.
func sum(form string, args ...any) string {
	all := sha256.Sum256(fmt.Appendf(nil, form, args...))
	return hex.EncodeToString(all[:8])
}
