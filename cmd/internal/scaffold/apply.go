package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// heading stands above the lines that abl adds to a file.
const heading = "# abl"

// Apply carries out a plan below root. What has appeared since the plan was
// made is kept. A file is there whole or not at all.
func Apply(root *os.Root, ops []Op) error {
	for _, op := range ops {
		var err error
		switch op.Kind {
		case Write:
			err = writeNew(root, op.Path, op.Data)
		case Add:
			err = addLines(root, op.Path, op.Lines)
		}
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", op.Path, err)
		}
	}
	return nil
}

// writeNew writes under another name and links the whole file into its place,
// which fails when something is there.
func writeNew(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if bytes.HasPrefix(data, []byte("#!")) {
		perm = 0o755
	}
	draft := name + ".abl-new"
	if err := writeDraft(root, draft, data, perm); err != nil {
		return err
	}
	err := root.Link(draft, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = create(root, name, data, perm) // a file system without hard links
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, root.Remove(draft))
}

// writeDraft replaces what an interrupted run may have left under that name.
func writeDraft(root *os.Root, draft string, data []byte, perm fs.FileMode) error {
	if err := root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return create(root, draft, data, perm)
}

func create(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

// addLines replaces the file by itself with the lines at its end.
func addLines(root *os.Root, name string, lines []string) error {
	perm := fs.FileMode(0o644)
	data, err := readRegular(root.FS(), name)
	switch {
	case err == nil:
		if info, err := root.Lstat(name); err == nil {
			perm = info.Mode().Perm()
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	draft := name + ".abl-new"
	if err := writeDraft(root, draft, []byte(withLines(string(data), lines)), perm); err != nil {
		return err
	}
	return root.Rename(draft, name)
}

// withLines puts lines below text, with the line ends that it has.
func withLines(text string, lines []string) string {
	end := "\n"
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	var b strings.Builder
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteString(end)
	}
	if text != "" {
		b.WriteString(end)
	}
	b.WriteString(heading + end)
	for _, l := range lines {
		b.WriteString(l + end)
	}
	return b.String()
}
