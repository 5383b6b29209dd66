package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"abl/internal/hostfs"
)

// perm lets the person's other tools read the ledger; it holds no secret.
const perm = 0o644

// Ledger is the tokens.csv of a project. One process writes it at a time: the
// caller holds the project's lock.
type Ledger struct{ path string }

// Open names the ledger at path, without touching it.
func Open(path string) *Ledger { return &Ledger{path: path} }

// EnsureHeader makes the file, its directory included, where it is missing, and
// repairs it otherwise: see Append. It tells what a person should know of the file.
func (l *Ledger) EnsureHeader() (notices []string, err error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the ledger's directory: %w", err)
	}
	notices, err = l.prepare()
	if err != nil {
		return notices, err
	}
	var bad []string
	err = l.Scan(func(Row) {}, func(line int, reason string) {
		bad = append(bad, fmt.Sprintf("line %d is not counted: %s", line, reason))
	})
	return append(notices, bad[:min(len(bad), 1)]...), err // abl costs names the others
}

// Append adds rows, all of them with one write; when it returns nil they survive
// a power cut. It can be repeated: a row whose call, model and source are in the
// file already is left out. Before it writes, a last line that was cut off is
// moved to <path>.torn, and a file with fewer columns is brought up to date. A file
// that is no ledger is never written to.
func (l *Ledger) Append(rows []Row) (notices []string, err error) {
	notices, err = l.prepare()
	if err != nil {
		return notices, err
	}
	rows, err = l.missing(rows)
	if err != nil || len(rows) == 0 {
		return notices, err
	}
	var data bytes.Buffer
	if err := write(&data, rows); err != nil {
		return notices, err
	}
	return notices, hostfs.Append(l.path, data.Bytes(), perm)
}

// Scan calls each with every row that is understood, and bad with the number of every
// other line and the reason. A missing file has no rows.
func (l *Ledger) Scan(each func(Row), bad func(line int, reason string)) error {
	data, err := l.read()
	if err != nil {
		return err
	}
	return l.scan(data, each, bad)
}

// missing returns the rows that the file does not hold yet.
func (l *Ledger) missing(rows []Row) (left []Row, err error) {
	there := map[key]bool{}
	if err := l.Scan(func(r Row) { there[r.key()] = true }, func(int, string) {}); err != nil {
		return nil, err
	}
	for _, r := range rows {
		k := r.Map(cleanText).key()
		if r.CallID == "" || !there[k] {
			left = append(left, r)
		}
		there[k] = true
	}
	return left, nil
}

// read reads the file, nil where there is none. What is not a regular file is
// refused: no link is followed, and no FIFO's writer waited for.
func (l *Ledger) read() ([]byte, error) {
	f, err := hostfs.Open(filepath.Dir(l.path), filepath.Base(l.path))
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the ledger %q: %w", l.path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("cannot read the ledger: %w", err)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil // a spreadsheet's
}

// prepare leaves a file to whose end rows can be appended. A file that is no ledger
// is found before anything is written.
func (l *Ledger) prepare() (notices []string, err error) {
	data, err := l.read()
	if err != nil {
		return nil, err
	}
	begun := bytes.IndexByte(data, '\n') < 0 && strings.HasPrefix(Header, string(data)) // or empty, or not there
	names := ""
	if !begun {
		if names, err = l.checkHeader(data); err != nil {
			return nil, err
		}
	}
	if tail := data[bytes.LastIndexByte(data, '\n')+1:]; len(tail) > 0 {
		if notices, err = l.cutTail(tail); err != nil {
			return nil, err
		}
	}
	switch {
	case begun:
		return notices, hostfs.Write(l.path, []byte(Header+"\n"), perm)
	case names != Header:
		kept, err := l.upgrade(data)
		if err != nil {
			return notices, err
		}
		return append(notices, "the file had fewer columns and was brought up to date, the old one is "+kept), nil
	}
	return notices, nil
}

// cutTail moves a last line without an end to the .torn file: it is the beginning
// of a row whose writing was cut short, and its last number may be too. It is
// kept before it is cut, so that no crash loses it.
func (l *Ledger) cutTail(tail []byte) ([]string, error) {
	keep := l.path + ".torn"
	if err := hostfs.Append(keep, append(bytes.Clone(tail), '\n'), perm); err != nil {
		return nil, fmt.Errorf("cannot keep the ledger's last line: %w", err)
	}
	_, err := hostfs.CutTornTail(l.path)
	return []string{fmt.Sprintf("the last line was cut off and is now in %s", filepath.Base(keep))}, err
}

// upgrade writes the rows of a file with fewer columns anew, and what is none of them
// as it was. The old file is kept under a name that it returns.
func (l *Ledger) upgrade(old []byte) (kept string, err error) {
	data := bytes.NewBufferString(Header + "\n")
	was := bytes.SplitAfter(old, []byte("\n"))
	var failed error
	each := func(r Row) { failed = errors.Join(failed, write(data, []Row{r})) }
	bad := func(line int, _ string) {
		if raw := was[line-1]; bytes.HasSuffix(raw, []byte("\n")) { // or it was moved to .torn
			data.Write(raw)
		}
	}
	if err := errors.Join(l.scan(old, each, bad), failed); err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		keep := Open(l.path + ".old" + strings.TrimPrefix(strconv.Itoa(n), "1"))
		there, err := keep.read()
		if err != nil {
			return "", err
		}
		if there != nil && !bytes.Equal(there, old) {
			continue
		}
		if err := hostfs.Write(keep.path, old, perm); err != nil {
			return "", fmt.Errorf("cannot keep the ledger as it was: %w", err)
		}
		return filepath.Base(keep.path), hostfs.Write(l.path, data.Bytes(), perm)
	}
}
