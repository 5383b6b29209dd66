package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// normalize converts the line ends of new and changed text files of a clone as .gitattributes
// requires, in the commit and in the work tree, like git add. Otherwise a fresh checkout would show
// them as changed. git runs with the attributes of the work tree and without filters. Files that
// were committed with CRLF before stay unchanged.
func (w *walk) normalize(ctx context.Context) error {
	if !w.opts.Clone || !slices.ContainsFunc(w.Entries, isAttributes) {
		return nil
	}
	texts := map[string][]byte{}
	for _, name := range differing(w.base.entries, w.Entries) {
		e := entryAt(w.Entries, name)
		if !isFile(e) {
			continue
		}
		data, err := w.withCRLF(e)
		if err != nil || data == nil {
			continue // a read error is reported elsewhere
		}
		if was := entryAt(w.base.entries, name); was != nil {
			if had, err := w.withCRLF(was); err != nil || had != nil {
				continue
			}
		}
		texts[name] = data
	}
	if len(texts) == 0 {
		return nil
	}
	s, err := w.withAttributes(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	for i, e := range w.Entries {
		if data, is := texts[e.Name]; is && err == nil {
			w.Entries[i], err = w.normalized(ctx, s, e, data)
		}
	}
	return err
}

// withCRLF returns the content of a text file with CRLF, nil for other files.
func (w *walk) withCRLF(e *index.Entry) ([]byte, error) {
	var in io.ReadCloser
	var err error
	if o, is := w.objects.all[e.Hash]; is {
		in, err = o.Reader()
	} else {
		in, _, err = w.git.Store().Blob(e.Hash)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxText+1))
	if err != nil || len(data) > maxText || !bytes.Contains(data, []byte("\r\n")) {
		return nil, err
	}
	return data, nil
}

// withAttributes creates a scratch repository whose work tree has only the .gitattributes files of
// the workspace.
func (w *walk) withAttributes(ctx context.Context) (*scratch, error) {
	s, err := newScratch(ctx, w.git, &w.repository)
	if err != nil {
		return nil, err
	}
	for _, e := range w.Entries {
		if !isAttributes(e) || err != nil {
			continue
		}
		to := filepath.Join(s.work, filepath.FromSlash(e.Name))
		var data []byte
		if data, err = hostfs.Read(w.dir, e.Name, maxSteering); err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o700), hostfs.Write(to, data, 0o600))
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// inWorkTree returns a command of the user's git in the work tree of the scratch repository.
func (s *scratch) inWorkTree(ctx context.Context, args ...string) *exec.Cmd {
	cmd := s.command(ctx, append([]string{"-C", s.work, "-c", "core.bare=false"}, args...)...)
	cmd.Env = append(cmd.Env, "GIT_WORK_TREE="+s.work)
	return cmd
}

// normalized returns the entry of a file as git would add it. If it differs, normalized also
// rewrites the file.
func (w *walk) normalized(ctx context.Context, s *scratch, e *index.Entry, data []byte) (*index.Entry, error) {
	cmd := s.inWorkTree(ctx, "-c", "core.safecrlf=false", "hash-object", "-w", "--path="+e.Name, "--stdin")
	cmd.Stdin = bytes.NewReader(data)
	out, err := output(cmd)
	if err != nil {
		return e, err
	}
	hash := plumbing.NewHash(strings.TrimSpace(string(out)))
	if hash == e.Hash {
		return e, nil
	}
	text, err := output(s.command(ctx, "cat-file", "blob", hash.String()))
	if err == nil {
		_, err = w.objects.blob(text)
	}
	if err == nil {
		err = w.overwrite(e.Name, text)
	}
	if err != nil {
		return e, fmt.Errorf("cannot write %q with the line ends of .gitattributes: %w", e.Name, err)
	}
	return &index.Entry{Name: e.Name, Mode: e.Mode, Hash: hash}, nil
}
