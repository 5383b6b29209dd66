package view

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	seconds := []int{1, 2, 59, 61, 90, 125}
	words := func(took time.Duration) string { return "took " + took.Round(time.Second).String() }
	var out bytes.Buffer
	var said []string
	tick := make(chan time.Time)
	stop := Watch(&out, tick, words, func(line string) { said = append(said, line) })
	began := time.Now()
	for _, s := range seconds {
		tick <- began.Add(time.Duration(s) * time.Second)
	}
	stop()
	stop()
	if want := []string{"took 1m1s", "took 2m5s"}; !slices.Equal(said, want) || out.Len() > 0 {
		t.Errorf("got %q and %q in a pipe, want %q and nothing", said, &out, want)
	}
}

func TestWatchOnATerminal(t *testing.T) {
	for _, columns := range []int{10, 80} {
		got, raw := onTerminal(t, columns, "", func(v *View, _ chan<- time.Time) {
			v.Close()
			tick := make(chan time.Time)
			stop := Watch(v.facts.out, tick, func(took time.Duration) string { return "one two three " + took.Round(time.Second).String() }, nil)
			for s := range 3 {
				tick <- time.Now().Add(time.Duration(s) * time.Second)
			}
			stop()
		})
		want := map[int]string{10: "one two …", 80: "one two three 2s"}[columns]
		if !strings.Contains(raw, want) || strings.TrimSpace(got.text()) != "" || got.column != 0 || !got.cursor {
			t.Errorf("%d columns: got %q, which leaves %q; want %q and then nothing", columns, raw, got.text(), want)
		}
	}
}
