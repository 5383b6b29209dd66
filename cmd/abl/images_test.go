package main

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"abl/images"
)

func TestImagesReportProgress(t *testing.T) {
	var printed []string
	begun := time.Now()
	report := func(since time.Time, what string) {
		if !since.Equal(begun) {
			t.Errorf("start: got %s, want %s", since, begun)
		}
		printed = append(printed, what)
	}
	c := &counted{Writer: io.Discard, Reader: strings.NewReader(strings.Repeat("x", 2_500_000)), report: report, begun: begun, size: 5_000_000}
	for range 2 {
		if _, err := io.CopyN(io.Discard, c, 1_250_000); err != nil {
			t.Fatal(err)
		}
	}
	c.n = 0
	if _, err := io.CopyN(c, strings.NewReader("12345"), 5); err != nil {
		t.Fatal(err)
	}
	if want := []string{"loading, 2.5 of 5.0 MB", "saving, 0.0 MB"}; !slices.Equal(printed[len(printed)-2:], want) {
		t.Errorf("progress: got %q, want %q at the end", printed, want)
	}
}

// The name and the status of an image are the first columns, for scripts.
func TestImagesList(t *testing.T) {
	documents, table := tableOfImages([]images.State{
		{Name: "claude", Ref: "abl/claude:1", Origin: "mirror"}, {Name: "tools", Ref: "abl/tools:1", Have: true, Origin: "mirror", Size: 412_600_000}, {Name: "npm", Ref: "abl/npm:1", Have: true, Size: 9, Old: true},
	})
	want := "IMAGE   STATUS   SIZE    REFERENCE     BASE\nclaude  missing          abl/claude:1\ntools   made     413 MB  abl/tools:1   mirror\nnpm     other    0 MB    abl/npm:1\n"
	if got := table.Text(0, false); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	data, err := json.Marshal(documents)
	if want := `[{"name":"claude","made":false,"ref":"abl/claude:1","size":0,"old":false},` +
		`{"name":"tools","made":true,"ref":"abl/tools:1","base":"mirror","size":412600000,"old":false},{"name":"npm","made":true,"ref":"abl/npm:1","size":9,"old":true}]`; err != nil || string(data) != want {
		t.Errorf("got %s (%v), want %s", data, err, want)
	}
}
