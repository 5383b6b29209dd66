package exit_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"abl/cmd/internal/exit"
)

// TestMain lets the test binary play the program that gets the signals.
func TestMain(m *testing.M) {
	switch os.Getenv("EXIT_TEST_PLAY") {
	case "":
		os.Exit(m.Run())
	case "wait":
		os.Exit(playWait())
	case "part":
		os.Exit(playPart())
	case "pipe":
		os.Exit(playPipe())
	}
}

// playWait ends with the cause of the first signal. With EXIT_TEST_HANG it hangs
// while it cleans up.
func playWait() int {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("cancelled")
	if os.Getenv("EXIT_TEST_HANG") != "" {
		select {}
	}
	return exit.Code(exit.Because(ctx, ctx.Err()))
}

// playPart runs a part that a signal ends, and continues until a signal ends the whole.
func playPart() int {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	defer stop()
	part, over := exit.Part(ctx)
	fmt.Println("ready")
	<-part.Done()
	if os.Getenv("EXIT_TEST_HANG") != "" {
		fmt.Println("tidying up")
		select {}
	}
	over()
	fmt.Println("the part is over")
	<-ctx.Done()
	return exit.Code(exit.Because(ctx, ctx.Err()))
}

// playPipe writes to a standard output without a reader.
func playPipe() int {
	_, stop := exit.Signals(context.Background(), os.Stderr)
	defer stop()
	io.Copy(io.Discard, os.Stdin)
	if _, err := fmt.Println("lost"); err == nil {
		return exit.Bug
	}
	return exit.Stuck
}

func play(t *testing.T, what string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(append(os.Environ(), "EXIT_TEST_PLAY="+what), env...)
	return cmd
}

func TestFirstSignalCancels(t *testing.T) {
	for sig, want := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		code, _ := signalled(t, play(t, "wait"), sig)
		if code != want {
			t.Errorf("exit code after %v: got %d, want %d", sig, code, want)
		}
	}
}

func TestSecondInterruptLeavesAtOnce(t *testing.T) {
	code, stderr := signalled(t, play(t, "wait", "EXIT_TEST_HANG=1"), syscall.SIGTERM, syscall.SIGINT)
	if code != 130 || !strings.Contains(stderr, "stopped immediately") {
		t.Errorf("second signal: got exit code %d, stderr %q, want 130 and %q", code, stderr, "stopped immediately")
	}
}

// The first SIGINT ends only the current part, and a later one the whole. Any other signal ends both.
func TestPart(t *testing.T) {
	if code, stderr := insisted(t, play(t, "part")); code != 130 || stderr != "" {
		t.Errorf("repeated SIGINT: got exit code %d, stderr %q, want 130 and none", code, stderr)
	}
	if code, _ := signalled(t, play(t, "part"), syscall.SIGTERM); code != 143 {
		t.Errorf("exit code after SIGTERM: got %d, want 143", code)
	}
	if code, stderr := insisted(t, play(t, "part", "EXIT_TEST_HANG=1")); code != 130 || !strings.Contains(stderr, "stopped immediately") {
		t.Errorf("part that hangs: got exit code %d, stderr %q, want 130 and %q", code, stderr, "stopped immediately")
	}
}

// insisted sends SIGINT until the program has ended.
func insisted(t *testing.T, cmd *exec.Cmd) (int, string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
		t.Fatal("the program ended before it was ready")
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, out)
	}()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			cmd.Process.Signal(syscall.SIGINT)
		case <-ended:
			tick.Stop()
			cmd.Wait()
			return cmd.ProcessState.ExitCode(), stderr.String()
		}
	}
}

// signalled sends one signal after each line that cmd prints.
func signalled(t *testing.T, cmd *exec.Cmd, signals ...syscall.Signal) (int, string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, s := range signals {
		if !lines.Scan() {
			t.Fatalf("the program ended before it got %v", s)
		}
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	return cmd.ProcessState.ExitCode(), stderr.String()
}

func TestClosedOutputEndsNoProcess(t *testing.T) {
	cmd := play(t, "pipe")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	r.Close()
	in.Close()
	cmd.Wait()
	if got := cmd.ProcessState.String(); got != "exit status 3" {
		t.Errorf("ended with %s, want exit status 3", got)
	}
}

func TestStopTwice(t *testing.T) {
	ctx, stop := exit.Signals(t.Context(), io.Discard)
	stop()
	stop()
	if got := exit.Because(ctx, ctx.Err()); got != context.Canceled {
		t.Errorf("error after stop: got %v, want %v", got, context.Canceled)
	}
}
