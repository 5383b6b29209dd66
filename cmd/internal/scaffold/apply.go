package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
)

// Apply writes the files of a plan below root.
func Apply(root *os.Root, ops []Op) error {
	for _, op := range ops {
		if op.Kind == Keep {
			continue
		}
		if err := write(root, op); err != nil {
			return fmt.Errorf("cannot write %q: %w", op.Path, err)
		}
	}
	return nil
}

// write writes the file of an operation. It follows no link out of root, and keeps a file that was created
// since the plan.
func write(root *os.Root, op Op) error {
	if err := root.MkdirAll(path.Dir(op.Path), 0o755); err != nil {
		return err
	}
	perm := fs.FileMode(0o644)
	if bytes.HasPrefix(op.Data, []byte("#!")) {
		perm = 0o755
	}
	if info, err := root.Lstat(op.Path); err == nil {
		if op.Kind == Write {
			return nil
		}
		perm = info.Mode().Perm()
	}
	return hostfs.Write(filepath.Join(root.Name(), op.Path), op.Data, perm)
}

const (
	ignoreFile = ".gitignore"
	heading    = "# abl" // above the lines that abl adds
)

// AddLines plans to append the lines that .gitignore lacks, with the file's line ends.
func AddLines(project fs.FS, lines []string) (Op, error) {
	data, err := readRegular(project, ignoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Op{}, fmt.Errorf("cannot add lines to %s: %w", ignoreFile, err)
	}
	text, end := string(data), "\n"
	have := map[string]bool{}
	for line := range strings.Lines(text) {
		have[pattern(line)] = true
	}
	missing := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return have[pattern(l)] })
	if len(missing) == 0 {
		return Op{Kind: Keep, Path: ignoreFile}, nil
	}
	if strings.Contains(text, "\r\n") {
		end = "\r\n"
	}
	if text != "" {
		text = strings.TrimSuffix(text, end) + end + end
	}
	text += heading + end + strings.Join(missing, end) + end
	return Op{Kind: Add, Path: ignoreFile, Data: []byte(text), Lines: missing}, nil
}

// pattern normalizes a line of .gitignore: leading and trailing slashes make no difference for abl's names.
func pattern(line string) string {
	return strings.Trim(strings.TrimSpace(line), "/")
}

// readRegular reads a regular file. It fails for links and devices.
func readRegular(project fs.FS, name string) ([]byte, error) {
	info, err := fs.Lstat(project, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return fs.ReadFile(project, name)
}
