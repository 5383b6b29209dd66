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

// gitignore plans the lines that the repository around the project needs, and
// says what it means when that repository tracks the Builder's workspace.
func (p *Plan) gitignore(project fs.FS, tracked Tracked, o Options) error {
	want, _ := fs.ReadFile(abl.Template(), "gitignore") // as files does
	lines := strings.Fields(string(want))
	var notes []Op
	for _, dir := range []string{p.Src, cmp.Or(o.Tests, ".abl/tests")} {
		known, err := tracked(dir)
		if err != nil {
			return fmt.Errorf("cannot tell whether the repository around the project tracks %q: %w", dir, err)
		}
		if !known {
			lines = append(lines, dir+"/")
			continue
		}
		notes = append(notes, Op{Kind: Note, Path: dir, Text: fmt.Sprintf(
			"the repository around the project tracks %[1]s/: abl gives it a history of its own, in %[1]s/.git, beside that one", dir)})
		if dir == p.Src {
			p.Offer = offer(project)
			notes = append(notes, Op{Kind: Note, Path: dir, Text: fmt.Sprintf(
				"to keep the two apart, take another directory: `abl init --src %s` in a new project, or directories.src in .abl/config.yaml", p.Offer)})
		}
	}
	op, err := AddLines(project, lines)
	p.Ops = append(append(p.Ops, op), notes...)
	return err
}

// offer is a name that nothing in the project has.
func offer(project fs.FS) string {
	name := "app"
	for n := 2; ; n++ {
		if _, err := fs.Lstat(project, name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
		name = fmt.Sprintf("app%d", n)
	}
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
