package view

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"abl/internal/state"
)

// At the end a terminal shows each event as a line and no status. A status never takes two rows.
func TestLiveOnATerminal(t *testing.T) {
	for _, columns := range []int{24, 40, 80, 200} {
		got, raw := onTerminal(t, columns, "", func(v *View, tick chan<- time.Time) {
			for _, e := range aPhase() {
				v.Emit(e)
				tick <- time.Time{}
			}
		})
		for _, want := range []string{"phase 1: Notes that stay", "abl        fail: 2 contracts", "exit code 4)"} {
			if !strings.Contains(got.unfolded(), strings.ReplaceAll(want, " ", "")) {
				t.Errorf("%d columns: the screen lacks %q:\n%s", columns, want, got.text())
			}
		}
		if strings.Contains(got.unfolded(), "writessrc") || got.column != 0 || got.rows[len(got.rows)-1] != "" {
			t.Errorf("%d columns: got the screen\n%s\nwant no status at the end", columns, got.text())
		}
		if !got.cursor {
			t.Errorf("%d columns: got a hidden cursor at the end, want a visible one", columns)
		}
		if n := strings.Count(got.unfolded(), "iteration1starts"); n != 1 {
			t.Errorf("%d columns: got a fact %d times on the screen, want it once", columns, n)
		}
		if !strings.Contains(raw, "\x1b[32m") && !strings.Contains(raw, "\x1b[31m") {
			t.Errorf("%d columns: got no colour on a terminal, want one", columns)
		}
	}
}

// No row of an agent's text looks like the first row of an event, wherever the terminal folds it.
func TestNoRowPassesForAFact(t *testing.T) {
	for _, columns := range []int{60, 80, 132} {
		for pad := range columns {
			got, _ := onTerminal(t, columns, "", func(v *View, _ chan<- time.Time) {
				v.Emit(state.Event{Kind: state.Note, Role: "verifier", Text: strings.Repeat("─", pad) + "0:07__abl________passed"})
			})
			for _, row := range got.rows {
				if strings.HasPrefix(strings.TrimSpace(row), "0:07__abl") && !strings.HasPrefix(row, strings.Repeat(" ", head)) {
					t.Fatalf("%d columns, %d before: got the row %q, want none that looks like a fact",
						columns, pad, row)
				}
			}
		}
	}
}

func TestNoColor(t *testing.T) {
	_, raw := onTerminal(t, 80, "1", func(v *View, _ chan<- time.Time) {
		v.Emit(state.Event{Kind: state.Verdict, Verdict: "fail"})
	})
	if strings.Contains(raw, "\x1b[3") || strings.Contains(raw, "\x1b[2m") {
		t.Errorf("output with NO_COLOR: got %q, want no colour", raw)
	}
}

func TestAutoOnTerminals(t *testing.T) {
	for term, want := range map[string]bool{"xterm-256color": true, "dumb": false, "": false} {
		master, tty := terminal(t, 80)
		t.Setenv("TERM", term)
		v := Open(t.Context(), Options{Stderr: tty})
		v.Close()
		if live := v.facts.live; live != want || v.events != nil {
			t.Errorf("TERM=%s: got live %t, want %t and no events", term, live, want)
		}
		tty.Close()
		master.Close()
	}
}

// onTerminal runs a view on a terminal and returns what is left on the screen.
func onTerminal(t *testing.T, columns int, noColor string, do func(*View, chan<- time.Time)) (*screen, string) {
	t.Helper()
	master, tty := terminal(t, columns)
	defer master.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", noColor)
	raw := make(chan string)
	go func() {
		data, _ := io.ReadAll(master) // ends with an error once the other side is closed
		raw <- string(data)
	}()
	tick := make(chan time.Time)
	v := open(t.Context(), Options{Stderr: tty}, tick)
	do(v, tick)
	v.Close()
	tty.Close()
	text := <-raw
	s := newScreen(columns)
	s.feed(t, text)
	return s, text
}

func terminal(t *testing.T, columns int) (master, tty interface {
	io.ReadWriteCloser
	Fd() uintptr
}) {
	t.Helper()
	m, s, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(m, &pty.Winsize{Rows: 100, Cols: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	return m, s
}

// screen is a minimal terminal: an unsupported control sequence fails the test.
type screen struct {
	columns int
	rows    []string // the last one has the cursor
	column  int
	cursor  bool
}

func newScreen(columns int) *screen {
	return &screen{columns: columns, rows: []string{""}, cursor: true}
}

// text joins wrapped lines, so that they can be searched.
func (s *screen) text() string { return strings.Join(s.rows, "") }

// unfolded returns the text without the blanks that folding inserts.
func (s *screen) unfolded() string { return strings.ReplaceAll(s.text(), " ", "") }

func (s *screen) feed(t *testing.T, data string) {
	t.Helper()
	for data != "" {
		if data[0] == '\x1b' {
			end := strings.IndexAny(data, "Khlm")
			if end < 0 {
				t.Fatalf("escape sequence: got %q, want one with an end", data)
			}
			s.escape(t, data[:end+1])
			data = data[end+1:]
			continue
		}
		r := []rune(data)[0]
		s.put(r)
		data = data[len(string(r)):]
	}
}

func (s *screen) escape(t *testing.T, code string) {
	t.Helper()
	last := len(s.rows) - 1
	switch {
	case code == "\x1b[K":
		s.rows[last] = string([]rune(s.rows[last])[:s.column])
	case code == hideCursor, code == showCursor:
		s.cursor = code == showCursor
	case strings.HasSuffix(code, "m"):
	default:
		t.Fatalf("escape sequence: got %q, want one that the view uses", code)
	}
}

func (s *screen) put(r rune) {
	last := len(s.rows) - 1
	switch r {
	case '\r':
		s.column = 0
	case '\n':
		s.rows = append(s.rows, "")
	default:
		if s.column == s.columns {
			s.rows, s.column = append(s.rows, ""), 0
			last++
		}
		row := []rune(s.rows[last])
		s.rows[last] = string(append(row[:s.column:s.column], r))
		s.column++
	}
}
