package main

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/images"
)

func TestImagesTellHowMuchIsThrough(t *testing.T) {
	var told []string
	begun := time.Now()
	tell := func(since time.Time, what string) {
		if !since.Equal(begun) {
			t.Errorf("since %s, want %s", since, begun)
		}
		told = append(told, what)
	}
	c := &counted{Writer: io.Discard, Reader: strings.NewReader(strings.Repeat("x", 2_500_000)), tell: tell, begun: begun, size: 5_000_000}
	for range 2 {
		if _, err := io.CopyN(io.Discard, c, 1_250_000); err != nil {
			t.Fatal(err)
		}
	}
	c.n = 0
	if _, err := io.CopyN(c, strings.NewReader("12345"), 5); err != nil {
		t.Fatal(err)
	}
	if want := []string{"loading, 2.5 of 5.0 MB", "saving, 0.0 MB"}; !slices.Equal(told[len(told)-2:], want) {
		t.Errorf("told %q, want %q at the end", told, want)
	}
}

// What an image is called and whether it is there stand first, for scripts.
func TestImageLine(t *testing.T) {
	for want, s := range map[string]images.State{
		"claude       missing":                                  {Name: "claude"},
		"claude       missing  abl/claude:1":                    {Name: "claude", Ref: "abl/claude:1", Origin: "mirror"},
		"claude       made     abl/claude:1 (base from mirror)": {Name: "claude", Ref: "abl/claude:1", Have: true, Origin: "mirror"},
		"holder       made     abl/holder:1":                    {Name: "holder", Ref: "abl/holder:1", Have: true},
	} {
		if got := imageLine(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
