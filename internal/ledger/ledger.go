package ledger

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err == nil && len(data) > maxBytes {
		err = fmt.Errorf("%w (more than %d bytes)", hostfs.ErrTooLarge, maxBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the ledger %q: %w", l.path, err)
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil // a spreadsheet's
}

// maxBytes bounds a ledger, which a repository may bring along. It has room for 300,000 rows.
const maxBytes = 64 << 20

// prepare leaves a file to whose end rows can be appended. A file that is no ledger
// is found before anything is written.
func (l *Ledger) prepare() (notices []string, err error) {
	data, err := l.read()
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		return nil, hostfs.Write(l.path, []byte(Header+"\n"), perm)
	}
	names, err := l.checkHeader(data)
	if err != nil {
		return nil, err
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	if tail := data[len(whole):]; len(tail) > 0 {
		if err := l.cutTail(tail); err != nil {
			return nil, err
		}
		notices = append(notices, "the last line was cut off and is now in "+filepath.Base(l.torn()))
	}
	if names != Header {
		if err := hostfs.Write(l.path, widened(whole, names), perm); err != nil {
			return notices, err
		}
		notices = append(notices, "the file had fewer columns and was brought up to date")
	}
	return notices, nil
}

func (l *Ledger) torn() string { return l.path + ".torn" }

// cutTail moves a last line without an end to the .torn file: it is the beginning
// of a row whose writing was cut short, and its last number may be too. It is
// kept before it is cut, so that no crash loses it.
func (l *Ledger) cutTail(tail []byte) error {
	if err := hostfs.Append(l.torn(), append(bytes.Clone(tail), '\n'), perm); err != nil {
		return fmt.Errorf("cannot keep the ledger's last line: %w", err)
	}
	_, err := hostfs.CutTornTail(l.path)
	return err
}

// widened gives the rows of a file with fewer columns the others, which are empty. What is
// no row stays as it was.
func widened(data []byte, names string) []byte {
	before := strings.Split(names, ",")
	more := strings.Repeat(",", strings.Count(Header, ",")+1-len(before)) + "\n"
	all := []byte(Header + "\n")
	_, rows, _ := bytes.Cut(data, []byte("\n"))
	for line := range bytes.Lines(rows) {
		if _, err := parse(line, before); err == nil {
			line = append(bytes.TrimRight(line, "\r\n"), more...)
		}
		all = append(all, line...)
	}
	return all
}

// Neutral returns the content of a ledger that another program may have written, as abl writes
// it: its rows in order, each text cell safe to open in a spreadsheet. A line that is not a row
// becomes one text cell, so it is still not counted. Neutral of its own result changes nothing.
func Neutral(data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) == 0 {
		return data, nil
	}
	names, err := (&Ledger{"tokens.csv"}).checkHeader(data)
	if err != nil {
		return nil, err
	}
	all := bytes.NewBufferString(names + "\n")
	out := csv.NewWriter(all)
	_, rows, _ := bytes.Cut(data, []byte("\n"))
	for line := range bytes.Lines(rows) {
		cells, err := parse(line, strings.Split(names, ","))
		if errors.Is(err, io.EOF) {
			continue
		}
		if err != nil {
			if cells, err = csv.NewReader(bytes.NewReader(line)).Read(); err != nil || len(cells) != 1 {
				cells = []string{string(line)}
			}
		}
		for i, cell := range cells {
			cells[i] = guard(cleanText(unguard(cell)))
		}
		if err := out.Write(cells); err != nil {
			return nil, fmt.Errorf("cannot rewrite the ledger: %w", err)
		}
	}
	out.Flush()
	return all.Bytes(), out.Error()
}
