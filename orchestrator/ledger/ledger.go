package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl/internal/hostfs"

	"golang.org/x/sys/unix"
)

// perm lets the person's other tools read the ledger; it holds no secret.
const perm = 0o644

// Ledger is the tokens.csv of a project. One process writes it at a time: the
// caller holds the project's lock.
type Ledger struct{ path string }

// Notice is something about the file that the person should be told.
type Notice struct {
	Line int // counted from 1, 0 for the file as a whole
	Text string
}

// Open names the ledger at path, without touching it.
func Open(path string) *Ledger { return &Ledger{path: path} }

// noFollow refuses a link in a file's place, and does not wait for a FIFO's writer.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// EnsureHeader makes the file, its directory included, where it is missing, and
// repairs it otherwise: see Append. Lines that cannot be understood are moved to
// <path>.aside, and named.
func (l *Ledger) EnsureHeader() ([]Notice, error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the ledger's directory: %w", err)
	}
	notices, err := l.prepare()
	if err != nil {
		return notices, err
	}
	more, err := l.setAside()
	return append(notices, more...), err
}

// Append adds rows, all of them with one write; when it returns nil they survive
// a power cut. It can be repeated: a row whose call, model and source are in the
// file already is left out. Before it writes, a last line that was cut off is
// moved to <path>.torn, and a file of an older or a spreadsheet's form is brought
// into ours, a copy kept; the notices say so. A file that is no ledger is never
// written to.
func (l *Ledger) Append(rows []Row) ([]Notice, error) {
	notices, err := l.prepare()
	if err != nil {
		return notices, err
	}
	rows, err = l.missing(rows)
	if err != nil || len(rows) == 0 {
		return notices, err
	}
	data, err := encode(rows)
	if err != nil {
		return notices, fmt.Errorf("cannot write a row of the ledger: internal error: %w", err)
	}
	return notices, hostfs.Append(l.path, data, perm)
}

// Scan reads the ledger as a stream: see the function Scan. A missing file has
// no rows.
func (l *Ledger) Scan(each func(Row), bad func(line int, reason string)) error {
	f, err := l.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := Scan(f, each, bad); err != nil {
		return l.refuse(err)
	}
	return nil
}

// missing returns the rows that the file does not hold yet.
func (l *Ledger) missing(rows []Row) ([]Row, error) {
	wanted := map[key]bool{}
	for _, r := range rows {
		wanted[keyOf(clean(r))] = true
	}
	err := l.Scan(func(r Row) { delete(wanted, keyOf(r)) }, func(int, string) {})
	if err != nil {
		return nil, err
	}
	var left []Row
	for _, r := range rows {
		k := keyOf(clean(r))
		if r.CallID == "" || wanted[k] {
			left = append(left, r)
			delete(wanted, k)
		}
	}
	return left, nil
}

// open opens the ledger for reading, and refuses what is not a regular file.
func (l *Ledger) open() (*os.File, error) {
	f, err := os.OpenFile(l.path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the ledger: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("cannot open the ledger: %q is not a regular file", l.path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// refuse says of a file that is no ledger which it is and what to do.
func (l *Ledger) refuse(err error) error {
	var foreign *Foreign
	if errors.As(err, &foreign) {
		return fmt.Errorf("cannot use %q as the ledger: %w: move it away and run again, a new one is made", l.path, err)
	}
	return fmt.Errorf("cannot read the ledger %q: %w", l.path, err)
}
