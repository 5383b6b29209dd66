package learn

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"

	"github.com/creack/pty"
)

// screen records the output to a terminal, so that a test can wait for a part of it.
type screen struct {
	mu   sync.Mutex
	more *sync.Cond
	text bytes.Buffer
	seen int
	end  bool
}

func (s *screen) read(from io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.end = s.end || err != nil
		s.more.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// over ends all waits.
func (s *screen) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = true
	s.more.Broadcast()
}

// ended reports whether no more output will come.
func (s *screen) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// shown returns all output.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for a text after the one awaited before.
func (s *screen) await(t *testing.T, text string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if i := strings.Index(s.text.String()[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return
		}
		if s.end {
			t.Fatalf("terminal: got\n%s\nwant %q next", s.text.String(), text)
		}
		s.more.Wait()
	}
}

// TestMain lets the test binary be agent-learner, for tests that send it signals.
func TestMain(m *testing.M) {
	if os.Getenv("LEARN_TEST_PLAY") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := cli.Main(ctx, app("test", openStub), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// A user at a terminal types earlier lines, a task, and the end of the input.
func TestReplAtATerminal(t *testing.T) {
	newPerson(t)
	person, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer person.Close()
	s := &screen{}
	s.more = sync.NewCond(&s.mu)
	go s.read(person)
	defer time.AfterFunc(2*time.Minute, s.over).Stop() // so that no test waits forever
	ended := make(chan int, 1)
	go func() {
		code := cli.Main(t.Context(), app("test", openStub), []string{"-c", "1"}, tty, tty, io.Discard)
		tty.Close()
		ended <- code
	}()
	typed := func(text string) {
		if _, err := person.WriteString(text); err != nil {
			t.Error(err)
		}
	}
	s.await(t, "Type a task, or :help.")
	s.await(t, promptText)
	typed(":agent gemini\r")
	s.await(t, "Agent: gemini, model: gemini-3.8-flash")
	s.await(t, promptText)
	typed("tell the time\r")
	s.await(t, "LEARNING CYCLE 1/1 [Agent: gemini | Model: gemini-3.8-flash]")
	s.await(t, "Session summary: tell the time")
	s.await(t, promptText)
	typed("\x1b[A\x1b[A\r") // two lines up
	s.await(t, "Agent: gemini")
	s.await(t, promptText)
	typed(":clear\r")
	s.await(t, "\x1b[2J")
	s.await(t, promptText)
	typed("\x04")
	if code := <-ended; code != 0 {
		t.Errorf("exit code: got %d, want 0", code)
	}
}

// Ctrl-C stops only the current task; at the prompt it quits.
func TestInterruptAtATerminal(t *testing.T) {
	p := newPerson(t)
	cmd := exec.Command(os.Args[0], "-c", "1")
	cmd.Env = append(os.Environ(), "LEARN_TEST_PLAY=1")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	s := &screen{}
	s.more = sync.NewCond(&s.mu)
	go s.read(tty)
	defer time.AfterFunc(2*time.Minute, func() { s.over(); _ = cmd.Process.Kill() }).Stop()
	typed := func(text string) {
		if _, err := tty.WriteString(text); err != nil {
			t.Error(err)
		}
	}
	s.await(t, promptText)
	typed("do hang\r")
	s.await(t, "Phase 1: write the program")
	for { // until the agent runs
		if _, err := os.Stat(filepath.Join(p.dir, "hung")); err == nil {
			break
		}
		if s.ended() {
			t.Fatalf("terminal: got\n%s\nwant a running agent", s.shown())
		}
		time.Sleep(10 * time.Millisecond)
	}
	typed("\x03")
	s.await(t, "Session summary: do hang")
	s.await(t, "stopped   in cycle 1 of 1, at generate; finished cycles are saved")
	s.await(t, "The task was stopped; type it again")
	s.await(t, promptText)
	typed("do hang\r")
	s.await(t, "Resuming in cycle 1, generate")
	s.await(t, "code, from cycle 1")
	s.await(t, promptText)
	typed("\x03")
	if err := cmd.Wait(); err != nil {
		t.Errorf("end of the program: got error %v, want none; terminal:\n%s", err, s.shown())
	}
}

// A signal at the prompt ends the program without waiting for input.
func TestTermAtThePrompt(t *testing.T) {
	newPerson(t)
	cmd := exec.Command(os.Args[0], "--repl")
	cmd.Env = append(os.Environ(), "LEARN_TEST_PLAY=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }).Stop()
	if _, err := io.WriteString(in, ":agent\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "Agent: gemini, model: gemini-3.8-flash, cycles: 3\n" {
		t.Fatalf("first line: got %q, error %v, want the agent, its model and the cycles", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exit.TERM {
		t.Errorf("exit code after SIGTERM: got %d, want %d", code, exit.TERM)
	}
}
