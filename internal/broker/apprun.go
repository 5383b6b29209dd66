package broker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/proc"
	"abl/internal/wording"

	"golang.org/x/sys/unix"
)

// The bounds of one run of an app of kind command.
const (
	MaxExchange = 16 << 20 // bytes of the files in each direction

	maxFiles   = 1000
	maxName    = 1000     // bytes of a file's path
	maxLeft    = 20       // files to name as left out
	maxPrinted = 4 << 20  // bytes of standard output, and of standard error
	maxAsked   = 32 << 20 // bytes of the encoded arguments and files
	maxRan     = 64 << 20 // bytes of the response
	runGrace   = time.Second
)

// runApp handles POST /app: it runs the app once, after the services are ready.
func (s *server) runApp(w http.ResponseWriter, r *http.Request) {
	if !s.spec.App.IsProgram() {
		refuse(w, http.StatusConflict, "the app is a server, not a program")
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errors.New("the app's container ends")) })()
	in := json.NewDecoder(io.LimitReader(r.Body, maxAsked))
	var run helper.AppRun
	if err := in.Decode(&run); err != nil {
		refuse(w, http.StatusBadRequest, "cannot read the command to run: "+err.Error())
		return
	}
	select {
	case <-s.up:
	case <-ctx.Done():
		refuse(w, http.StatusConflict, "the services did not start")
		return
	}
	s.home.RLock()
	defer s.home.RUnlock()
	ran := RunApp(ctx, *s.spec.App, s.spec.Dir, s.log.pipe, run, func(stdin io.WriteCloser) {
		feed(stdin, w, io.MultiReader(in.Buffered(), r.Body), cancel)
	})
	s.log.note("%s ended with exit code %d %s", helper.AppAlias, ran.Exit, ran.Error)
	write(w, http.StatusOK, ran)
}

// clearHome removes the files in the home directory of the app.
func (s *server) clearHome() error {
	s.home.Lock()
	defer s.home.Unlock()
	home := os.Getenv("HOME")
	files, err := os.ReadDir(home)
	errs := []error{err}
	for _, f := range files {
		errs = append(errs, hostfs.Remove(home, f.Name()))
	}
	return errors.Join(errs...)
}

// RunApp runs a program once, in a new directory with the files of the exchange folder, and returns its
// output and the files in the directory. src is its source; feed starts to write its standard input.
func RunApp(
	ctx context.Context, app helper.App, src string, log io.Writer, run helper.AppRun, feed func(io.WriteCloser),
) (ran helper.AppRan) {
	failed := func(err error) helper.AppRan { return helper.AppRan{Error: "cannot run the program: " + err.Error()} }
	dir, err := os.MkdirTemp("", "run-*-") // no name is the prefix of another
	if err != nil {
		return failed(err)
	}
	defer func() {
		if err := hostfs.Remove(filepath.Dir(dir), filepath.Base(dir)); err != nil {
			ran.Left = append(ran.Left, err.Error())
		}
	}()
	if err := LayFiles(dir, run.Files); err != nil {
		return failed(err)
	}
	cmd := programCommand(app.Command, run.Args)
	cmd.Dir = dir
	cmd.Env = slices.Concat(cmd.Environ(), app.Env, []string{"ABL_SRC=" + src, "ABL_RUN=" + dir})
	out, errs := &proc.Head{Max: maxPrinted}, &proc.Head{Max: maxPrinted}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(log, out), io.MultiWriter(log, errs)
	limit := milliseconds(app.TimeoutMS)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("stopped after %v", limit))
	defer cancel()
	ran.Exit, err = attend(ctx, cmd, runGrace, feed)
	if cmd.Process == nil {
		return failed(err)
	}
	proc.KillMarked(cmd.Process.Pid, dir)
	if err != nil {
		ran.Error = err.Error()
	}
	ran.Args, ran.Stdout, ran.Stderr = run.Args, out.Kept.Bytes(), errs.Kept.Bytes()
	ran.Files, ran.Left = Files(dir)
	if out.Cut || errs.Cut {
		ran.Left = append(ran.Left, fmt.Sprintf("its output is cut after %d bytes", maxPrinted))
	}
	return ran
}

// Files reads the regular files below a directory, within the bounds of an exchange. left names the
// other files and why they are left out.
func Files(dir string) (files map[string][]byte, left []string) {
	files = map[string][]byte{}
	room, more := int64(MaxExchange), 0
	err := hostfs.Walk(dir, "", func(e hostfs.Entry) error {
		name, why := e.Path(), ""
		switch {
		case e.Kind() == unix.S_IFDIR:
			return nil
		case e.Kind() != unix.S_IFREG:
			why = "it is " + e.What()
		case len(name) > maxName || !utf8.ValidString(name):
			why = "its name is too long or not UTF-8"
		case len(files) == maxFiles || e.Stat.Size > room:
			why = fmt.Sprintf("want at most %d files with %d bytes in total", maxFiles, MaxExchange)
		default:
			data, err := hostfs.Read(dir, name, room)
			if err == nil {
				files[name], room = data, room-int64(len(data))
				return nil
			}
			why = err.Error()
		}
		if more++; more <= maxLeft {
			left = append(left, fmt.Sprintf("%s is left out: %s", wording.Cut(fmt.Sprintf("%q", name), 200), why))
		}
		return nil
	})
	if more > maxLeft {
		left = append(left, fmt.Sprintf("%d more are left out", more-maxLeft))
	}
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		left = append(left, "the rest is left out: "+err.Error())
	}
	return files, left
}

// LayFiles writes files below a directory and replaces existing files. It follows no link out of the
// directory.
func LayFiles(dir string, files map[string][]byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, data := range files {
		if !filepath.IsLocal(name) || name == "." {
			return fmt.Errorf("%q is not a relative path inside %q", name, dir)
		}
		err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.RemoveAll(name))
		if err == nil {
			err = root.WriteFile(name, data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RunApp runs the app once at the broker, with the standard input stdin.
func (c Client) RunApp(ctx context.Context, run helper.AppRun, stdin io.Reader) (ran helper.AppRan, err error) {
	head, err := json.Marshal(run)
	if err == nil && len(head) > maxAsked {
		err = fmt.Errorf("the arguments and files are too large: %d bytes", len(head))
	}
	if err != nil {
		return ran, err
	}
	err = c.post(ctx, "/app", io.MultiReader(bytes.NewReader(head), stdin), maxRan, &ran)
	return ran, err
}
