package commit

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/tartree"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/orchestrator/dirs"
)

// copy writes the project as a tar stream for the box: all of it but what is
// nobody's business there, and as the property of the box's user.
func (b *box) copy(to io.Writer) error {
	from, whole := io.Pipe()
	as := path.Base(dirs.Src)
	go func() { whole.CloseWithError(tartree.Write(whole, as, b.root, ".git", codecommit.ConfigDir)) }()
	defer from.Close()
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if b.withheld(strings.TrimSuffix(strings.TrimPrefix(h.Name, as+"/"), "/")) {
			continue
		}
		h.Uid, h.Gid = b.user[0], b.user[1]
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}

// withheld says whether a build in a box does not get to see a path: logs, keys
// and what .env files hold.
func (b *box) withheld(name string) bool {
	_, logs := b.logDir()
	for _, dir := range []string{"logs", logs, b.profile.Stage} {
		if dir != "" && (name == dir || strings.HasPrefix(name, dir+"/")) {
			return true
		}
	}
	for _, file := range b.profile.Keys {
		if name == file {
			return true
		}
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".env") {
			return true
		}
	}
	return false
}

// outputs are the two files that a box writes its output into.
type outputs struct {
	stream io.Writer
	files  [2]*os.File
	kept   [2]build.Capped
}

func (o *outputs) open(dir string) error {
	for i, name := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		o.files[i], o.kept[i].To = f, o.stream
		if err := errors.Join(f.Chmod(0o666), os.Chmod(dir, 0o711)); err != nil { // the box's user writes it
			return err
		}
	}
	return nil
}

func (o *outputs) close() {
	for _, f := range o.files {
		if f != nil {
			f.Close()
		}
	}
}

// follow takes what comes, until stop has taken the rest.
func (o *outputs) follow() (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			o.take()
			select {
			case <-done:
				o.take()
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (o *outputs) take() {
	for i, f := range o.files {
		io.Copy(&o.kept[i], f) // from where the last time ended
	}
}

func (o *outputs) text() (stdout, stderr string) { return o.kept[0].String(), o.kept[1].String() }
