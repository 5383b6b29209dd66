package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"abl"
)

// heading stands above the lines that abl adds to a file.
const heading = "# abl"

// Apply carries out a plan below root. What has appeared since the plan was made is kept.
func Apply(root *os.Root, ops []Op) error {
	for _, op := range ops {
		var err error
		switch op.Kind {
		case Write:
			perm := fs.FileMode(0o644)
			if bytes.HasPrefix(op.Data, []byte("#!")) {
				perm = 0o755
			}
			if _, none := root.Lstat(op.Path); none != nil {
				err = create(root, op.Path, op.Data, perm)
			}
		case Add:
			err = addLines(root, op.Path, op.Lines)
		}
		if err != nil {
			return fmt.Errorf("cannot write %q: %w", op.Path, err)
		}
	}
	return nil
}

// create makes a file, whole or not at all, and keeps one that has appeared there.
func create(root *os.Root, name string, data []byte, perm fs.FileMode) error {
	draft, err := write(root, name, data, perm)
	if err != nil {
		return err
	}
	if err = root.Link(draft, name); err == nil || errors.Is(err, fs.ErrExist) {
		return root.Remove(draft)
	}
	return root.Rename(draft, name) // not every file system has links
}

// write makes the draft of a file, through no link that leads out of root. It replaces what
// an interrupted run may have left under the draft's name.
func write(root *os.Root, name string, data []byte, perm fs.FileMode) (draft string, err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return "", err
	}
	draft = name + ".abl-new"
	if err := root.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	f, err := root.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return draft, errors.Join(err, f.Sync(), f.Close())
}

// addLines replaces the file by itself with the lines at its end.
func addLines(root *os.Root, name string, lines []string) error {
	perm := fs.FileMode(0o644)
	if info, err := root.Lstat(name); err == nil {
		perm = info.Mode().Perm()
	}
	data, err := readRegular(root.FS(), name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	draft, err := write(root, name, []byte(withLines(string(data), lines)), perm)
	if err != nil {
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
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += end
	}
	if text != "" {
		text += end
	}
	return text + heading + end + strings.Join(lines, end) + end
}

const ignoreFile = ".gitignore"

// gitignore plans the lines that the repository around the project needs.
func (p *Plan) gitignore(project fs.FS, o Options) error {
	want, _ := fs.ReadFile(abl.Template(), "gitignore") // as files does
	src := p.Src + "/"
	if p.Repo != "" {
		src = ".abl/work/"
	}
	op, err := AddLines(project, append(strings.Fields(string(want)), src, cmp.Or(o.Tests, ".abl/tests")+"/"))
	p.Ops = append(p.Ops, op)
	return err
}

// AddLines plans those lines that .gitignore lacks.
func AddLines(project fs.FS, lines []string) (Op, error) {
	have := map[string]bool{}
	data, err := readRegular(project, ignoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Op{}, fmt.Errorf("cannot add lines to %s: %w", ignoreFile, err)
	}
	for line := range strings.Lines(string(data)) {
		have[pattern(line)] = true
	}
	missing := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return have[pattern(l)] })
	if len(missing) == 0 {
		return Op{Kind: Keep, Path: ignoreFile}, nil
	}
	return Op{Kind: Add, Path: ignoreFile, Lines: missing}, nil
}

// pattern is what a line of .gitignore means here: a slash in front or behind
// makes no difference for the names that abl adds.
func pattern(line string) string {
	return strings.Trim(strings.TrimSpace(line), "/")
}

// readRegular reads a file that is no link and no device.
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
