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

// perm lets other tools of the user read the ledger, which contains no secrets.
const perm = 0o644

// Ledger is the tokens.csv of a project. The caller holds the project's lock while it writes.
type Ledger struct{ path string }

// Open returns the ledger at path. It does not access the file.
func Open(path string) *Ledger { return &Ledger{path: path} }

// EnsureHeader creates the file and its directory, or repairs an existing file like Append. It
// returns messages for the user.
func (l *Ledger) EnsureHeader() (notices []string, err error) {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the ledger's directory: %w", err)
	}
	notices, err = l.prepare()
	if err != nil {
		return notices, err
	}
	var bad []string
	err = l.Scan(func(Row) {}, func(line int, reason string) {
		bad = append(bad, fmt.Sprintf("line %d is not counted: %s", line, reason))
	})
	return append(notices, bad[:min(len(bad), 1)]...), err // abl costs shows the others
}

// Append adds rows with one write. If it returns nil, they survive a power failure. It is
// idempotent: it omits rows whose call, model and source are already in the file. It first moves an
// incomplete last line to <path>.torn and adds missing columns. It never writes to a file that is
// not a ledger.
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

// Scan calls each for every valid row, and bad with the number of every other line and the reason.
// A missing file has no rows.
func (l *Ledger) Scan(each func(Row), bad func(line int, reason string)) error {
	data, err := l.read()
	if err != nil {
		return err
	}
	return l.ScanText(data, each, bad)
}

// missing returns the rows that are not in the file.
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

// read returns the content, nil if the file does not exist. It rejects files that are not regular:
// it neither follows links nor blocks on a FIFO.
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
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil // spreadsheets add it
}

// maxBytes is the maximum size of a ledger, which a repository may contain. That is about 300,000
// rows.
const maxBytes = 64 << 20

// prepare makes the file ready for Append. It rejects a file that is not a ledger before it writes
// anything.
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
		notices = append(notices, "moved the incomplete last line to "+filepath.Base(l.torn()))
	}
	if names != Header {
		if err := hostfs.Write(l.path, addColumns(whole, names), perm); err != nil {
			return notices, err
		}
		notices = append(notices, "added the missing columns")
	}
	return notices, nil
}

func (l *Ledger) torn() string { return l.path + ".torn" }

// cutTail moves an incomplete last line to the .torn file. It copies the line before it removes it,
// so that a crash does not lose it.
func (l *Ledger) cutTail(tail []byte) error {
	if err := hostfs.Append(l.torn(), append(bytes.Clone(tail), '\n'), perm); err != nil {
		return fmt.Errorf("cannot save the ledger's last line: %w", err)
	}
	_, err := hostfs.CutTornTail(l.path)
	return err
}

// addColumns adds empty cells for the missing columns to all rows. It does not change other lines.
func addColumns(data []byte, names string) []byte {
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

// Neutral returns the content of a ledger from an untrusted source as abl writes it: its rows in
// order, with text cells that are safe in a spreadsheet. A line that is not a row becomes one text
// cell and still does not count. Neutral is idempotent.
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
			cells[i] = guard(cleanText(removeApostrophe(cell)))
		}
		if err := out.Write(cells); err != nil {
			return nil, fmt.Errorf("cannot rewrite the ledger: %w", err)
		}
	}
	out.Flush()
	return all.Bytes(), out.Error()
}
