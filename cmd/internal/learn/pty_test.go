package learn

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"abl/cmd/internal/cli"
)

// screen is all that a terminal was told, for whoever waits for a part of it.
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

// over ends all waiting.
func (s *screen) over() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = true
	s.more.Broadcast()
}

// await returns once text comes, after what was awaited before.
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
			t.Fatalf("the terminal never shows %q:\n%s", text, s.text.String())
		}
		s.more.Wait()
	}
}

// A person at a terminal: completion, history, a task, and the end of the input.
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
	defer time.AfterFunc(2*time.Minute, s.over).Stop() // so that nothing waits for ever for what never comes
	ended := make(chan int, 1)
	go func() {
		code := cli.Main(t.Context(), app("test"), []string{"--runtime", "host", "-c", "1"}, tty, tty, io.Discard)
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
	typed(":ag\tgem\t\r")
	s.await(t, "Agent: gemini, model: gemini-2.5-pro")
	s.await(t, promptText)
	typed("tell the time\r")
	s.await(t, "LEARNING CYCLE 1/1 [Agent: gemini | Model: gemini-2.5-pro]")
	s.await(t, "Session summary: tell the time")
	s.await(t, promptText)
	typed("\x1b[A\x1b[A\r") // two lines back
	s.await(t, "Agent: gemini")
	s.await(t, promptText)
	typed(":clear\r")
	s.await(t, "\x1b[2J")
	s.await(t, promptText)
	typed("\x04")
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
	if data, err := os.ReadFile("solutions/.history"); err != nil || string(data) != ":agent gemini\ntell the time\n:agent gemini\n:clear\n" {
		t.Errorf("%q, %v", data, err)
	}
}
