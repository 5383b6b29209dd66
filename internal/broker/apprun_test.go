package broker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/helper"
	"abl/internal/testing/lab"
)

// runs starts a broker whose app is a program: a shell with this script of testdata.
func runs(t *testing.T, script string, edit func(*helper.BrokerSpec)) *bench {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	b := serve(t, "", func(s *helper.BrokerSpec) {
		s.App = &helper.App{Kind: helper.KindCommand, Command: `sh "$ABL_SRC/app.sh"` + "\n", TimeoutMS: 60_000}
		if err := os.WriteFile(filepath.Join(s.Dir, "app.sh"), []byte(lab.File(t, script)), 0o600); err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			edit(s)
		}
	})
	return b
}

func (b *bench) app(stdin string, files map[string]string, args ...string) helper.AppRan {
	b.t.Helper()
	run := helper.AppRun{Files: map[string][]byte{}}
	for _, arg := range args {
		run.Args = append(run.Args, []byte(arg))
	}
	for name, text := range files {
		run.Files[name] = []byte(text)
	}
	ran, err := b.client.RunApp(b.t.Context(), run, strings.NewReader(stdin))
	if err != nil {
		b.t.Fatal(err)
	}
	if ran.Error == "" && !slices.EqualFunc(ran.Args, run.Args, bytes.Equal) {
		b.t.Errorf("arguments: got %q, want %q", ran.Args, run.Args)
	}
	ran.Args = nil
	return ran
}

func TestRunApp(t *testing.T) {
	b := runs(t, "apps/modes.sh", nil)
	b.want(EventReady)
	for _, tt := range []struct {
		name string
		got  helper.AppRan
		want helper.AppRan
	}{
		{"arguments", b.app("", nil, "args", "", "a b", "$x\n", "\xff", "-n"), helper.AppRan{Exit: 3, Stdout: []byte("<args><><a b><$x\n><\xff><-n>")}},
		{"input-and-files", b.app("std\n", map[string]string{"deep/in.txt": "file\n", "gone": ""}, "in"),
			helper.AppRan{Stdout: []byte("std\nfile\n"), Stderr: []byte("warned\n"),
				Files: map[string][]byte{"deep/in.txt": []byte("file\n"), "deep/out.txt": []byte("new\n")}}},
		{"a-fresh-directory", b.app("", nil, "where"), helper.AppRan{Stdout: []byte("fresh\n"), Files: map[string][]byte{"left": []byte("y\n")}}},
		{"a-fresh-directory-again", b.app("", nil, "where"), helper.AppRan{Stdout: []byte("fresh\n"), Files: map[string][]byte{"left": []byte("y\n")}}},
		{"what-is-stored", b.app("", nil, "home"), helper.AppRan{Stdout: []byte("kept\n")}},
		{"a-signal", b.app("", nil, "killed"), helper.AppRan{Exit: 137, Stderr: []byte("Killed\n")}},
		{"bytes", b.app("", nil, "bytes"), helper.AppRan{Stdout: []byte("\xff\x00\x1b"), Files: map[string][]byte{"raw": []byte("\xff")}}},
		{"closed", b.app(strings.Repeat("x", 1<<20), nil, "quiet"), helper.AppRan{Exit: 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	if reply, err := b.client.Restart(t.Context()); err != nil || reply.Exit != 0 {
		t.Errorf("restart: got %+v, error %v, want exit code 0", reply, err)
	}
	if ran := b.app("", nil, "home"); len(ran.Stdout) > 0 {
		t.Errorf("output after a restart: got %q, want none", ran.Stdout)
	}
	for _, name := range []string{"../out", "/abs", ".", "a/../../b"} {
		if ran := b.app("", map[string]string{name: ""}, "home"); !strings.Contains(ran.Error, "is not a relative path inside") {
			t.Errorf("run with the file %q: got %+v, want an error about its path", name, ran)
		}
	}
	if ran := b.app("", nil, strings.Repeat("x", 1<<20)); !strings.Contains(ran.Error, "argument list too long") {
		t.Errorf("run with a long argument: got %+v, want the error %q", ran, "argument list too long")
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("temporary files: got %v, error %v, want none", left, err)
	}
}

// A run waits for the services, and the app counts as ready with them.
func TestRunAppWaitsForServices(t *testing.T) {
	port := freePort(t)
	b := runs(t, "apps/up.sh", func(s *helper.BrokerSpec) {
		s.Services = []helper.Service{{Name: "127.0.0.1", Port: port, TimeoutMS: 60_000}}
	})
	ran := make(chan helper.AppRan)
	go func() {
		got, err := b.client.RunApp(t.Context(), helper.AppRun{}, strings.NewReader(""))
		got.Error += fmt.Sprint(err)
		ran <- got
	}()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.want(EventReady)
	if got := <-ran; string(got.Stdout) != "up\n" || got.Error != "<nil>" {
		t.Errorf("run: got %+v, want the output %q and no error", got, "up\n")
	}
}

func TestRunAppOfAnother(t *testing.T) {
	b := idle(t)
	ran, err := b.client.RunApp(t.Context(), helper.AppRun{}, strings.NewReader(""))
	if err != nil || ran.Error == "" {
		t.Errorf("run without an app: got %+v, error %v, want an error in the reply only", ran, err)
	}
}

// A run, with all its processes, ends with its client and at its limit.
func TestRunAppEnds(t *testing.T) {
	const program = "apps/outlives.sh"
	b := runs(t, program, func(s *helper.BrokerSpec) { s.App.TimeoutMS = 600_000 })
	pid := strings.TrimSpace(string(b.app("", nil, "daemon").Stdout))
	// The portable list of processes has no environments, so it does not find this one.
	if ran := b.app("", nil, "runs", pid); pid == "" || len(ran.Stdout) > 0 && !lab.Portable {
		t.Errorf("process %q of another session: got %+v, want it ended", pid, ran)
	}
	ended := 2 // the two runs above
	for _, input := range []struct {
		name  string
		bytes int64
		open  bool // after they were read
	}{{"no-input", 0, false}, {"much-input", maxStdin - 1, true}, {"open-input", 0, true}} {
		t.Run(input.name, func(t *testing.T) {
			ended++
			ctx, cancel := context.WithCancel(t.Context())
			stdin := io.LimitReader(endless{}, input.bytes)
			if input.open {
				r, w := io.Pipe()
				defer context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })()
				stdin = io.MultiReader(stdin, r)
			}
			gone := make(chan error)
			go func() {
				ran, err := b.client.RunApp(ctx, helper.AppRun{Args: [][]byte{[]byte("wait")}}, stdin)
				if err == nil && ctx.Err() == nil {
					t.Errorf("run that waits: got %+v, want it to end with its client", ran)
				}
				gone <- err
			}()
			for up := filepath.Join(os.Getenv("HOME"), "up"); t.Context().Err() == nil; {
				if os.Remove(up) == nil {
					break
				}
				select {
				case err := <-gone:
					t.Fatalf("run that waits: got its end before its start, error %v, want it running", err)
				default:
				}
			}
			cancel()
			if err := <-gone; err == nil {
				t.Error("error of a run without its client: got none, want one")
			}
			if reply, err := b.client.Restart(t.Context()); err != nil || reply.Exit != 0 { // waits for all runs
				t.Errorf("restart: got %+v, error %v, want exit code 0", reply, err)
			}
		})
	}
	b.stop()
	if log := b.log(); strings.Count(log, "app ended") != ended || strings.Contains(log, "stopped after") {
		t.Errorf("ended runs: got %d, want %d, none of them at its limit, in the log\n%s",
			strings.Count(log, "app ended"), ended, log)
	}
	b = runs(t, program, func(s *helper.BrokerSpec) { s.App.TimeoutMS = 100 })
	if ran := b.app("", nil, "wait"); ran.Error != "stopped after 100ms" {
		t.Errorf("run at its limit: got %+v, want the error %q", ran, "stopped after 100ms")
	}
}

// Files that are not regular, and too many or too large ones, are named and left out.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int64{"a/small": 3, "big": MaxExchange + 1, "bad\xff": 1, "half": MaxExchange/2 + 1, "half2": MaxExchange/2 + 1} {
		path := filepath.Join(dir, name)
		_ = os.MkdirAll(filepath.Dir(path), 0o700)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a/link")); err != nil {
		t.Fatal(err)
	}
	files, left := Files(dir)
	if len(files["a/small"]) != 3 || len(files) != 2 || len(left) != 4 {
		t.Errorf("files: got %d, left out %q, want 2 and 4 left out", len(files), left)
	}
	for _, want := range []string{`"a/link" is left out: it is a link`, `"bad\xff" is left out`, `"big" is left out: want at most`} {
		if !strings.Contains(fmt.Sprint(left), want) {
			t.Errorf("files left out: got %q, want %s in them", left, want)
		}
	}
	if files, left = Files(filepath.Join(dir, "none")); len(files)+len(left) > 0 {
		t.Errorf("files of no directory: got %v, left out %v, want none", files, left)
	}
	if err := os.Symlink(dir, filepath.Join(dir, "self")); err != nil {
		t.Fatal(err)
	}
	if files, left = Files(filepath.Join(dir, "self")); len(files) > 0 || len(left) != 1 {
		t.Errorf("files of a link: got %d, left out %v, want 0 and 1 left out", len(files), left)
	}
}
