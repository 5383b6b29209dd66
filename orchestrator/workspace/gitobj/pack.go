package gitobj

import (
	"bufio"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"abl/orchestrator/workspace/gitdir"
)

// pack is a pack in the making, in a temporary file.
type pack struct {
	dir     gitdir.Dir
	f       *os.File
	w       *bufio.Writer
	at      int64
	objects []packed
}

// packed is where an object stands in the pack.
type packed struct {
	name   Hash
	crc    uint32
	offset int64
}

const packHeaderLen = 12

func newPack(d gitdir.Dir) (*pack, error) {
	f, err := d.Temp("objects/pack", gitdir.PackTemp)
	if err != nil {
		return nil, err
	}
	p := &pack{dir: d, f: f, w: bufio.NewWriterSize(f, 256<<10), at: packHeaderLen}
	_, err = p.w.Write(make([]byte, packHeaderLen)) // the count is known at the end
	return p, err
}

// add writes an object that is compressed already; size is its true one.
func (p *pack) add(o object, size int64) error {
	head := entryHeader(o.kind, size)
	crc := crc32.Update(crc32.ChecksumIEEE(head), crc32.IEEETable, o.data)
	p.objects = append(p.objects, packed{o.name, crc, p.at})
	p.at += int64(len(head) + len(o.data))
	if _, err := p.w.Write(head); err != nil {
		return err
	}
	_, err := p.w.Write(o.data)
	return err
}

// entryHeader is the kind and size that stand before an object's bytes.
func entryHeader(k Kind, size int64) []byte {
	b := []byte{k.packType()<<4 | byte(size&15)}
	for size >>= 4; size > 0; size >>= 7 {
		b[len(b)-1] |= 0x80
		b = append(b, byte(size&0x7f))
	}
	return b
}

// ErrMoved says that a stream did not hold what it was announced to.
var ErrMoved = errors.New("it changed while it was read")

// stream writes an object while reading it; when it turns out not to be the
// one announced, the pack is cut back to where it was.
func (p *pack) stream(k Kind, name Hash, size int64, r io.Reader) error {
	start := p.at
	crc, namer := crc32.NewIEEE(), NewNamer(k, size)
	count := &counter{}
	out := io.MultiWriter(p.w, crc, count)
	if _, err := out.Write(entryHeader(k, size)); err != nil {
		return err
	}
	z := writers.Get().(*zlib.Writer)
	defer writers.Put(z)
	z.Reset(out)
	_, err := io.Copy(io.MultiWriter(z, namer), io.LimitReader(r, size))
	if err = errors.Join(err, z.Close(), p.w.Flush()); err == nil && Sum(namer) != name {
		err = ErrMoved
	}
	if err != nil {
		return errors.Join(err, p.cutBack(start))
	}
	p.at += count.n
	p.objects = append(p.objects, packed{name, crc.Sum32(), start})
	return nil
}

func (p *pack) cutBack(to int64) error {
	if err := p.f.Truncate(to); err != nil {
		return err
	}
	_, err := p.f.Seek(to, io.SeekStart)
	p.w.Reset(p.f)
	return err
}

type counter struct{ n int64 }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}

// finish completes the pack and its index and gives both their names, the pack
// last. git passes over an index without a pack and go-git over nothing: it
// finds packs by themselves and cannot read any object once one has no index.
func (p *pack) finish() error {
	sum, err := p.seal()
	if err != nil {
		return fmt.Errorf("cannot finish a pack: %w", err)
	}
	idx, err := p.dir.Temp("objects/pack", gitdir.PackTemp)
	if err != nil {
		return err
	}
	defer os.Remove(idx.Name())
	_, err = idx.Write(encodeIdx(p.objects, sum))
	if err = errors.Join(err, idx.Chmod(0o444), idx.Sync(), idx.Close()); err != nil {
		return fmt.Errorf("cannot write the index of a pack: %w", err)
	}
	base := p.dir.Join("objects/pack", "pack-"+sum.String())
	if err := os.Rename(idx.Name(), base+".idx"); err != nil {
		return err
	}
	return gitdir.Publish(p.f.Name(), base+".pack")
}

// seal writes the count into the header and the checksum behind the objects.
func (p *pack) seal() (sum Hash, err error) {
	head := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), uint32(len(p.objects)))
	if err = p.w.Flush(); err != nil {
		return sum, err
	}
	if _, err = p.f.WriteAt(head, 0); err != nil {
		return sum, err
	}
	h := sha1.New()
	if _, err = io.Copy(h, io.NewSectionReader(p.f, 0, p.at)); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	_, err = p.f.WriteAt(sum[:], p.at)
	return sum, errors.Join(err, p.f.Chmod(0o444), p.f.Sync())
}

// close removes what has no name yet.
func (p *pack) close() {
	p.f.Close()
	os.Remove(p.f.Name())
}
