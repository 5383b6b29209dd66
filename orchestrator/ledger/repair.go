package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// prepare leaves a file to whose end rows can be appended. What is wrong with the
// header is found before anything is written.
func (l *Ledger) prepare() ([]Notice, error) {
	first, err := l.firstLine()
	if err != nil {
		return nil, err
	}
	var form layout
	if first.ended || !strings.HasPrefix(Header, first.text) {
		if form, err = writable(first.text); err != nil {
			return nil, l.refuse(err)
		}
	}
	notices, err := l.cutTail()
	switch {
	case err != nil:
		return nil, err
	case !first.ended: // absent, empty, or its only line was cut off
		return notices, hostfs.Write(l.path, []byte(Header+"\n"), perm)
	case form.exact:
		return notices, nil
	}
	more, err := l.modernise()
	return append(notices, more...), err
}

// writable understands the header of a file that rows are to be appended to: one
// with further columns can be read only.
func writable(header string) (layout, error) {
	form, err := layoutOf(header)
	if err == nil && form.extra != "" {
		err = fmt.Errorf("its header has %q, which is no column of the ledger", form.extra)
	}
	if err != nil {
		return form, &Foreign{err.Error()}
	}
	return form, nil
}

// firstLine is how a file begins; ended says that the line has an end.
type firstLine struct {
	text  string
	ended bool
}

func (l *Ledger) firstLine() (firstLine, error) {
	f, err := l.open()
	if errors.Is(err, fs.ErrNotExist) {
		return firstLine{}, nil
	}
	if err != nil {
		return firstLine{}, err
	}
	defer f.Close()
	in := newLines(f)
	switch err := in.next(); {
	case errors.Is(err, io.EOF):
		return firstLine{}, nil
	case err != nil:
		return firstLine{}, l.refuse(err)
	}
	return firstLine{text: string(in.text), ended: !in.torn && !in.long}, nil
}

// cutTail moves a last line without an end to the .torn file: it is the beginning
// of a row whose writing was cut short, and its last number may be too. It is
// kept before it is cut, so that no crash loses it.
func (l *Ledger) cutTail() ([]Notice, error) {
	tail, err := l.tail()
	if err != nil || len(tail) == 0 {
		return nil, err
	}
	keep := l.path + ".torn"
	if err := hostfs.Append(keep, append(tail, '\n'), perm); err != nil {
		return nil, fmt.Errorf("cannot keep the ledger's last line: %w", err)
	}
	if _, err := hostfs.CutTornTail(l.path); err != nil {
		return nil, err
	}
	return []Notice{{Text: fmt.Sprintf("the last line was cut off and is now in %s", filepath.Base(keep))}}, nil
}

// tail returns what follows the last line end.
func (l *Ledger) tail() ([]byte, error) {
	f, err := l.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var tail []byte
	for end := info.Size(); end > 0; {
		block := make([]byte, min(end, maxLine))
		end -= int64(len(block))
		if _, err := f.ReadAt(block, end); err != nil {
			return nil, fmt.Errorf("cannot read the ledger's end: %w", err)
		}
		i := bytes.LastIndexByte(block, '\n')
		tail = append(block[i+1:], tail...)
		if i >= 0 {
			break
		}
	}
	return tail, nil
}
