package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
)

const mib = 1 << 20

// packed is an object of a pack that handmade writes.
type packed struct {
	kind    plumbing.ObjectType
	name    string // hash, of which nothing of the content is true
	base    string // name of a delta's base
	size    int64  // that the object, or the delta, declares
	content io.Reader
}

// declares returns an object that declares a size and contains 1 MiB of zeros.
func declares(kind plumbing.ObjectType, name string, size int64) packed {
	return packed{kind: kind, name: name, size: size, content: bytes.NewReader(make([]byte, mib))}
}

// copies returns a delta with a result of this size, which repeats the beginning of its base.
func copies(kind plumbing.ObjectType, name, base string, from, result int64) packed {
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(from)), uint64(result))
	for part := min(from, mib); result > 0; result -= part {
		part = min(part, result)
		delta = append(delta, 0xf0, byte(part), byte(part>>8), byte(part>>16)) // from its offset 0
	}
	return packed{kind, name, base, int64(len(delta)), bytes.NewReader(delta)}
}

// handmade writes a pack of objects and its index below a .git directory.
func handmade(t *testing.T, dir string, objects ...packed) {
	t.Helper()
	data := bytes.NewBufferString("PACK")
	data.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, packfile.VersionSupported), uint32(len(objects))))
	var index idxfile.Writer
	at := map[string]int64{}
	for _, o := range objects {
		start := int64(data.Len())
		at[o.name] = start
		index.Add(plumbing.NewHash(o.name), uint64(start), 0)
		c := byte(o.kind)<<4 | byte(o.size&0xf)
		for rest := o.size >> 4; ; rest >>= 7 {
			if rest == 0 {
				data.WriteByte(c)
				break
			}
			data.WriteByte(c | 0x80)
			c = byte(rest & 0x7f)
		}
		switch o.kind {
		case plumbing.REFDeltaObject:
			hash := plumbing.NewHash(o.base)
			data.Write(hash[:])
		case plumbing.OFSDeltaObject:
			back := start - at[o.base]
			bytes := []byte{byte(back & 0x7f)}
			for back >>= 7; back > 0; back >>= 7 {
				back--
				bytes = append([]byte{byte(back&0x7f) | 0x80}, bytes...)
			}
			data.Write(bytes)
		}
		w, err := zlib.NewWriterLevel(data, zlib.BestSpeed)
		must(t, err)
		_, err = io.Copy(w, o.content)
		must(t, errors.Join(err, w.Close()))
	}
	sum := sha1.Sum(data.Bytes())
	data.Write(sum[:])
	must(t, index.OnFooter(sum))
	all, err := index.Index()
	must(t, err)
	var idx bytes.Buffer
	_, err = idxfile.NewEncoder(&idx).Encode(all)
	must(t, err)
	name := filepath.Join(dir, "objects/pack", fmt.Sprintf("pack-%x", sum))
	must(t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o755),
		os.WriteFile(name+".pack", data.Bytes(), 0o600), os.WriteFile(name+".idx", idx.Bytes(), 0o600)))
}

var anyPack = regexp.MustCompile(`pack-[0-9a-f]{40}\.pack`)

// A small pack may declare huge objects, or create small objects from huge ones. abl creates none
// of them, and the error names the file.
func TestOriginOfDeltaBombs(t *testing.T) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	const blob, ofs, ref = plumbing.BlobObject, plumbing.OFSDeltaObject, plumbing.REFDeltaObject
	const damaged = "git fsck lists damaged objects"
	for _, tt := range []struct {
		name    string
		object  string // that is replaced
		objects func(file string) []packed
		want    string
	}{
		{"a large object", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, file, 1500*mib)}
		}, damaged},
		{"a large result", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, mib), copies(ofs, file, one, mib, 264*mib)}
		}, damaged},
		{"a large result in the middle", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, mib), copies(ofs, two, one, mib, 264*mib), copies(ofs, file, two, 264*mib, 1000)}
		}, damaged},
		{"a large result in the middle, by name", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, mib), copies(ref, two, one, mib, 264*mib), copies(ref, file, two, 264*mib, 1000)}
		}, damaged},
		{"a result of some MiB", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, mib), copies(ofs, two, one, mib, 264*mib), copies(ofs, file, two, 264*mib, 2*mib)}
		}, damaged},
		{"a large base", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, 264*mib), copies(ofs, file, one, 264*mib, 1000)}
		}, damaged},
		{"a base that is not as large as the delta says", "HEAD:lib/a.js", func(file string) []packed {
			return []packed{declares(blob, one, 264*mib), copies(ofs, file, one, 1000, 1000)}
		}, damaged},
		{"a tree of a large base", "HEAD^{tree}", func(file string) []packed {
			return []packed{declares(plumbing.TreeObject, one, 264*mib), copies(ofs, file, one, 264*mib, 1000)}
		}, `: the base of a delta in "objects/pack/PACK" has 276824064 bytes, want at most 268435456: git repack -adf`},
		{"long instructions", "HEAD:lib/a.js", func(file string) []packed {
			o := declares(ofs, file, 264*mib)
			o.base = one
			return []packed{declares(blob, one, mib), o}
		}, damaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := grown(t)
			file := git(t, dir, "rev-parse", tt.object)
			must(t, os.Remove(filepath.Join(dir, ".git/objects", file[:2], file[2:])))
			handmade(t, filepath.Join(dir, ".git"), tt.objects(file)...)
			took := allocated(func() {
				err := looked(t.Context(), dir, t.TempDir(), nil)
				if got := anyPack.ReplaceAllString(fmt.Sprint(err), "PACK"); !strings.Contains(got, tt.want) || !errors.Is(err, ErrForeign) {
					t.Errorf("got %s, want %q for the user to decide", got, tt.want)
				}
			})
			if took > 16*mib {
				t.Errorf("allocated bytes: got %d, want at most %d", took, 16*mib)
			}
		})
	}
}
