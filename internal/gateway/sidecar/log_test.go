package sidecar

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/redact"
	"abl/internal/sandbox"
)

// dying is an engine whose box has said these last words.
type dying struct {
	sandbox.Engine
	words string
}

func (dying) Stop(context.Context, string, time.Duration) error { return nil }
func (dying) Remove(context.Context, string) error              { return nil }
func (d dying) Logs(context.Context, string, int64) ([]byte, error) {
	return []byte(d.words), nil
}

// Whatever a gateway says when it dies, what is kept of it holds no key.
func TestLastWordsAreKeptSafe(t *testing.T) {
	o := &redact.Sanitizer{}
	o.Hide(key)
	s := Sidecar{Engine: dying{words: `{"seq":1,"kind":"ready"}` + "\npanic: " + key + "\x1b[2J\n"}, Keep: filepath.Join(t.TempDir(), "log"), Safe: o}
	for range 2 {
		log, err := s.Close(t.Context())
		if must(t, err); len(log.Entries) != 1 || log.Lost != 1 {
			t.Errorf("log %+v", log)
		}
	}
	kept, err := os.ReadFile(s.Keep)
	if must(t, err); !strings.HasSuffix(string(kept), "\npanic: [secret …15]\\u001b[2J\n") {
		t.Errorf("kept %q", kept)
	}
}

func TestParseCountsWhatIsLost(t *testing.T) {
	const ready, request, end = `{"seq":1,"kind":"ready"}`, `{"seq":2,"kind":"request"}`, `{"seq":3,"kind":"end"}`
	for _, c := range []struct {
		name, log     string
		entries, lost int
	}{
		{"whole", ready + "\n" + request + "\n" + end + "\n", 3, 0},
		{"nothing", "", 0, 1},
		{"killed", ready + "\n" + request + "\n", 2, 1},
		{"torn", ready + "\n" + `{"seq":2,"ki`, 1, 1},
		{"a line is missing", ready + "\n" + end + "\n", 2, 1},
		{"the first lines are rotated away", end + "\n", 1, 2},
		{"said twice", ready + "\n" + ready + "\n" + request + "\n" + end + "\n", 3, 0},
		{"words of a dying program", ready + "\npanic: x\n", 1, 1},
		{"words before a proper end", "x\n" + ready + "\n" + request + "\n" + end + "\n", 3, 0},
	} {
		got := parse([]byte(c.log))
		if len(got.Entries) != c.entries || got.Lost != int64(c.lost) {
			t.Errorf("%s: %d entries, %d lost, want %d and %d", c.name, len(got.Entries), got.Lost, c.entries, c.lost)
		}
	}
}
