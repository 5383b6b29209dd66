package codecommit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"abl/internal/hostfs"
)

// Rollup is the code of a project as one text.
type Rollup struct {
	Text    string    `json:"-"`
	Path    string    `json:"path"`
	Bytes   int       `json:"bytes"`
	Tokens  int       `json:"tokens"` // a guess
	Files   []Rolled  `json:"files"`
	Skipped []LeftOut `json:"skipped"`
}

// Rolled is a file in it.
type Rolled struct {
	Path   string `json:"path"`
	Tokens int    `json:"tokens"`
}

// LeftOut is one that is not, and why.
type LeftOut struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// maxRolled is the largest file that is taken, in bytes.
const maxRolled = 1 << 20

// Roller makes rollups.
type Roller struct {
	Root    string
	Ignored func(name string, dir bool) bool // what git leaves out
	Clean   func(string) string              // finds secrets
	Without []string                         // paths below Root that are left out without a word
}

// Roll takes every file that git would, but for those that hold secrets, are
// not text, are too large, or were written by a program. Without starts, files
// or folders below the root, it takes all of it.
func (r Roller) Roll(starts ...string) (Rollup, error) {
	out := Rollup{Files: []Rolled{}, Skipped: []LeftOut{}}
	var b strings.Builder
	if starts == nil {
		starts = []string{""}
	}
	for _, start := range starts {
		info, err := os.Lstat(filepath.Join(r.Root, start))
		switch {
		case errors.Is(err, os.ErrNotExist):
			err = nil
		case err != nil:
		case info.IsDir():
			err = r.folder(start, &b, &out)
		default:
			err = r.file(start, &b, &out)
		}
		if err != nil {
			return out, err
		}
	}
	out.Text = b.String()
	out.Bytes, out.Tokens = len(out.Text), Tokens(len(out.Text))
	return out, nil
}

func (r Roller) folder(dir string, b *strings.Builder, out *Rollup) error {
	entries, err := os.ReadDir(filepath.Join(r.Root, dir))
	if err != nil {
		return err
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.Name() == ".git" || e.Name() == ".abl" && r.Ignored != nil || slices.Contains(r.Without, name) || r.Ignored != nil && r.Ignored(name, e.IsDir()):
		case e.IsDir():
			if _, err := os.Lstat(filepath.Join(r.Root, name, ".git")); err == nil {
				out.Skipped = append(out.Skipped, LeftOut{name, "a repository of its own"})
				continue
			}
			if err := r.folder(name, b, out); err != nil {
				return err
			}
		case !e.Type().IsRegular():
			out.Skipped = append(out.Skipped, LeftOut{name, "a link, or no file"})
		default:
			if err := r.file(name, b, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r Roller) file(name string, b *strings.Builder, out *Rollup) error {
	why := suspicious(path.Base(name))
	var data []byte
	if why == "" {
		var err error
		data, err = hostfs.Read(r.Root, name, maxRolled)
		switch {
		case errors.Is(err, hostfs.ErrTooLarge):
			why = fmt.Sprintf("larger than %d KiB", maxRolled>>10)
		case errors.Is(err, hostfs.ErrAbsent), errors.Is(err, hostfs.ErrChanged):
			why = "it changed meanwhile"
		case err != nil:
			return err
		default:
			why = r.unfit(data)
		}
	}
	if why != "" {
		out.Skipped = append(out.Skipped, LeftOut{name, why})
		return nil
	}
	before := b.Len()
	b.WriteString("--- FILE " + name + " ---\n")
	b.Write(data)
	if len(data) > 0 && data[len(data)-1] != '\n' {
		b.WriteByte('\n')
	}
	out.Files = append(out.Files, Rolled{name, Tokens(b.Len() - before)})
	return nil
}

// unfit says why a content is not taken.
func (r Roller) unfit(data []byte) string {
	switch {
	case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
		return "not text"
	case bytes.Contains(data, []byte("PRIVATE KEY-----")), r.Clean(string(data)) != string(data):
		return "it holds a secret"
	}
	return ""
}

// suspicious says why a file is not even opened.
func suspicious(name string) string {
	folded := strings.ToLower(name)
	for _, pattern := range []string{
		".env*", "*.pem", "*.key", "*.p12", "*.pfx", "*.keystore", "*.jks", "id_rsa*", "id_ed25519*", "id_ecdsa*", "*-key.txt", ".npmrc", ".netrc", ".pypirc", "credentials*", "secrets.*",
	} {
		if ok, _ := path.Match(pattern, folded); ok {
			return "its name says that it holds secrets"
		}
	}
	for _, lock := range []string{
		"go.sum", "*.lock", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "packages.lock.json", "gradle.lockfile",
	} {
		if ok, _ := path.Match(lock, folded); ok {
			return "written by a program"
		}
	}
	return ""
}
