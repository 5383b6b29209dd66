package digest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"abl/internal/hostfs"
	"abl/orchestrator/workspace/scan"
)

// maxCache is the largest cache that is read, in bytes. A line is about 150
// bytes, and stands for a folder where there are many.
const maxCache = 256 << 20

// Cache remembers digests by path and by what the file system said then. It is
// worth its time and nothing else: without it everything is read.
type Cache struct {
	path string
	was  map[string]known

	mu      sync.Mutex
	is      map[string]known // what is worth keeping
	changed bool
}

type known struct{ key, sum string }

// line is the name of a path in the cache: paths are an agent's words, and may be
// any length.
func line(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// Open reads the cache at path, which may be missing or broken; "" is no file.
func Open(path string) *Cache {
	c := &Cache{path: path, was: map[string]known{}, is: map[string]known{}}
	if path == "" {
		return c
	}
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxCache)
	if err != nil {
		return c
	}
	for line := range bytes.Lines(data) {
		if f := strings.Fields(string(line)); len(f) == 3 {
			c.was[f[2]] = known{f[0], f[1]}
		}
	}
	return c
}

func (c *Cache) get(path, key string) (sum string, ok bool) {
	name := line(path)
	k, ok := c.was[name]
	if !ok || key == "" || k.key != key {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is[name] = k
	return k.sum, true
}

func (c *Cache) put(path, key, sum string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is[line(path)] = known{key, sum}
	c.changed = true
}

// Marked says whether something that is no file is as it was, and remembers it.
func (c *Cache) Marked(path, key string) (asBefore bool) {
	const mark = "//" // in no path
	if _, ok := c.get(mark+path, "m"+key); ok {
		return true
	}
	c.put(mark+path, "m"+key, "-")
	return false
}

// Save keeps what was got or put since Open.
func (c *Cache) Save() error {
	if c.path == "" || !c.changed && len(c.is) == len(c.was) {
		return nil
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(c.is)) {
		fmt.Fprintf(&b, "%s %s %s\n", c.is[name].key, c.is[name].sum, name)
	}
	return hostfs.Write(c.path, b.Bytes(), 0o600)
}

// folderKey changes whenever a file of the folder does; "" when one may yet
// change unseen.
func folderKey(left scan.Ignored) string {
	h := sha256.New()
	for i := range left.Files {
		f := &left.Files[i]
		if f.Unsettled {
			return ""
		}
		fmt.Fprintf(h, "%d ", len(f.Name))
		io.WriteString(h, f.Name)
		stat(h, f)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func fileKey(f *scan.IgnoredFile) string {
	h := sha256.New()
	stat(h, f)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// stat writes all that changes with a file, but for the device, whose number
// changes between mounts.
func stat(w io.Writer, f *scan.IgnoredFile) {
	s := f.Stat
	b := make([]byte, 0, 48)
	for _, n := range []uint32{s.CSec, s.CNsec, s.MSec, s.MNsec, s.Ino, s.UID, s.GID, f.Mode} {
		b = binary.LittleEndian.AppendUint32(b, n)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(f.Size))
	w.Write(b) // a hash never fails
}
