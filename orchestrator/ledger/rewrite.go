package ledger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
)

// modernise brings a file of an older or a spreadsheet's form into ours, a copy
// kept. Lines that are not understood stay as they are.
func (l *Ledger) modernise() ([]Notice, error) {
	kept, err := l.keep()
	if err != nil {
		return nil, err
	}
	if err := l.rewrite(nil); err != nil {
		return nil, err
	}
	return []Notice{{Text: fmt.Sprintf("the file had an older form and was brought up to date, the old one is %s", kept)}}, nil
}

// mostTold is how many lines are named one by one.
const mostTold = 20

// setAside moves the lines that are not understood, or that repeat another, out of
// the ledger to the .aside file, each with the reason. They are there, durably,
// before they are gone here.
func (l *Ledger) setAside() (notices []Notice, err error) {
	bad := 0
	err = l.Scan(func(Row) {}, func(line int, reason string) {
		if bad++; bad <= mostTold {
			notices = append(notices, Notice{Line: line, Text: fmt.Sprintf("set aside in %s: %s", filepath.Base(l.aside()), reason)})
		}
	})
	if err != nil || bad == 0 {
		return nil, err
	}
	if bad > mostTold {
		notices = append(notices, Notice{Text: fmt.Sprintf("%d further lines are set aside", bad-mostTold)})
	}
	aside, err := os.OpenFile(l.aside(), os.O_WRONLY|os.O_APPEND|os.O_CREATE|noFollow, perm)
	if err != nil {
		return nil, fmt.Errorf("cannot set lines of the ledger aside: %w", err)
	}
	err = l.rewrite(aside)
	return notices, errors.Join(err, aside.Close())
}

func (l *Ledger) aside() string { return l.path + ".aside" }

// rewrite puts the file's rows in our form in its place. What is no row goes to
// aside, which is synced before the file is replaced, or stays with nil.
func (l *Ledger) rewrite(aside *os.File) error {
	in, err := l.open()
	if err != nil {
		return err
	}
	defer in.Close()
	return hostfs.Fill(l.path, perm, func(w io.Writer) error {
		out := bufio.NewWriter(w)
		to := &rewriter{rows: NewWriter(out), out: out}
		rest := out
		if aside != nil {
			rest, to.why = bufio.NewWriter(aside), true
		}
		to.rest = rest
		if err := to.run(in); err != nil {
			return l.refuse(err)
		}
		if err := errors.Join(to.err, to.rows.Flush(), rest.Flush(), out.Flush()); err != nil || aside == nil {
			return err
		}
		return aside.Sync()
	})
}

// rewriter takes a ledger apart into rows and the rest.
type rewriter struct {
	rows *Writer
	out  *bufio.Writer
	rest *bufio.Writer // out, or where the rest goes
	why  bool          // with the reasons
	err  error
}

func (w *rewriter) run(in io.Reader) error {
	l := newLines(in)
	l.over = w.part
	w.note(w.rows.Header())
	return scan(l, func(r Row, _ []byte) { w.note(w.rows.Write(r)) }, func(line int, text []byte, reason string) {
		if !l.long {
			w.part(text)
		}
		w.raw("\n")
		if w.why {
			w.raw(fmt.Sprintf("# %s, line %d: %s\n", time.Now().UTC().Format(time.RFC3339), line, reason))
		}
	})
}

// part takes a piece of a line that is no row.
func (w *rewriter) part(text []byte) {
	if w.rest == w.out {
		w.note(w.rows.Flush()) // the lines keep their order
	}
	_, err := w.rest.Write(text)
	w.note(err)
}

func (w *rewriter) raw(text string) {
	_, err := w.rest.WriteString(text)
	w.note(err)
}

func (w *rewriter) note(err error) { w.err = errors.Join(w.err, err) }

// keep copies the file beside it, under a name that nothing has.
func (l *Ledger) keep() (string, error) {
	for i := 1; ; i++ {
		path := fmt.Sprintf("%s.old%d", l.path, i)
		if _, err := os.Lstat(path); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("cannot keep a copy of the ledger: %w", err)
		}
		in, err := l.open()
		if err != nil {
			return "", err
		}
		err = hostfs.Fill(path, perm, func(w io.Writer) error {
			_, err := io.Copy(w, in)
			return err
		})
		if err = errors.Join(err, in.Close()); err != nil {
			return "", fmt.Errorf("cannot keep a copy of the ledger: %w", err)
		}
		return filepath.Base(path), nil
	}
}
