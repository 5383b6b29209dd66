package agent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"abl/internal/usage"
)

func str(s string) *string { return &s }

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// playCall plays a call in dir and returns its records, other lines as records of type raw.
func playCall(t *testing.T, dir string, c ScriptCall) (code int, records []Record) {
	t.Helper()
	var out bytes.Buffer
	p := Player{Call: c, AppURL: "http://app:3000", Dir: dir, Out: &out, Now: now}
	code = p.Play(t.Context())
	lines := bufio.NewScanner(&out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil || r.Type == "" {
			r = Record{Type: "raw", Text: lines.Text()}
		}
		records = append(records, r)
	}
	return code, records
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestPlay(t *testing.T) {
	dir := t.TempDir()
	zero, five := 0, 5
	input := int64(12)
	code, got := playCall(t, dir, ScriptCall{
		Role: "builder", Phase: 1, Iteration: 2, Attempt: 1, Step: 4, Session: "s",
		Steps: []Step{
			{Say: str("phase {{phase}}")},
			{Write: "a/b/run.sh", Text: "#!/bin/sh\necho $0 {{app_url}} {{other}}\n", Mode: "0750"},
			{Append: "a/b/run.sh", Text: "exit 5\n"},
			{Write: "gone.txt", Text: "x"},
			{Delete: "gone.txt"},
			{Run: "./a/b/run.sh; echo err >&2; exit 5", Expect: &five},
			{Run: "exit 3"},
			{Sleep: Duration(time.Microsecond)},
			{Raw: str("not JSON")},
			{Report: str("report {{iteration}} {{step}}\n")},
			{Run: "true", Expect: &zero},
		},
		Usage: []ScriptUsage{{Model: "m", Count: usage.Count{Input: &input}, Requests: 2}},
		Exit:  0,
	})
	two := int64(2)
	want := []Record{
		{Type: "init", Role: "builder", Phase: 1, Iteration: 2, Attempt: 1, Session: "s"},
		{Type: "message", Text: "phase 1"},
		{Type: "tool", Tool: "write", Text: "a/b/run.sh"},
		{Type: "tool", Tool: "append", Text: "a/b/run.sh"},
		{Type: "tool", Tool: "write", Text: "gone.txt"},
		{Type: "tool", Tool: "delete", Text: "gone.txt"},
		{Type: "tool", Tool: "run", Text: "./a/b/run.sh; echo err >&2; exit 5"},
		{Type: "output", Text: "./a/b/run.sh http://app:3000 {{other}}"},
		{Type: "output", Text: "err"},
		{Type: "tool", Tool: "run", Text: "exit 3"},
		{Type: "tool", Tool: "sleep", Text: "1µs"},
		{Type: "raw", Text: "not JSON"},
		{Type: "tool", Tool: "report", Text: "builder_reports/phase1_v2_20260102T030405Z.md"},
		{Type: "tool", Tool: "run", Text: "true"},
		{Type: "result", Status: "success", Usage: []ScriptUsage{{Model: "m", Count: usage.Count{Input: &input}, Requests: 2}}, Requests: &two},
	}
	if diff := cmp.Diff(want, got); diff != "" || code != 0 {
		t.Errorf("exit code: got %d, want 0; records (-want +got):\n%s", code, diff)
	}
	if text := read(t, dir, "builder_reports/phase1_v2_20260102T030405Z.md"); text != "report 2 4\n" {
		t.Errorf("report: got %q, want %q", text, "report 2 4\n")
	}
	if _, err := os.Stat(filepath.Join(dir, "gone.txt")); !os.IsNotExist(err) {
		t.Errorf("deleted file: got error %v, want %v", err, os.ErrNotExist)
	}
}

func TestPlayEnds(t *testing.T) {
	five := 5
	tests := []struct {
		name   string
		call   ScriptCall
		code   int
		status string // of the last record, "" if it is not a result
		why    string
	}{
		{"ok", ScriptCall{}, 0, "success", ""},
		{"ok-with-a-code", ScriptCall{End: EndOK, Exit: 9}, 9, "success", ""},
		{"silent", ScriptCall{End: EndSilent}, 0, "", ""},
		{"error", ScriptCall{End: EndError}, 1, "error", "the scenario ends this call with an error"},
		{"error-with-a-code", ScriptCall{End: EndError, Exit: 41}, 41, "error", "the scenario ends this call with an error"},
		{"unexpected", ScriptCall{Steps: []Step{{Run: "exit 1", Expect: &five}, {Say: str("not said")}}}, 1, "error",
			`step 1: "exit 1" ended with exit code 1, expected was 5`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			code, records := playCall(t, t.TempDir(), tt.call)
			last := records[len(records)-1]
			if code != tt.code || last.Status != tt.status || last.Error != tt.why {
				t.Errorf("got exit %d, %+v, want exit %d, %s, %q", code, last, tt.code, tt.status, tt.why)
			}
		})
	}
}

// A hanging agent, and one in the middle of a step, end when stopped, without a result record.
func TestPlayStops(t *testing.T) {
	tests := []struct {
		name string
		call ScriptCall
		wait int // number of lines to wait for
	}{
		{"hangs", ScriptCall{End: EndHang}, 1},
		{"sleeps", ScriptCall{Steps: []Step{{Sleep: Duration(time.Hour)}}}, 2},
		{"runs", ScriptCall{Steps: []Step{{Run: "sleep 1000"}}}, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := tt.call
			ctx, cancel := context.WithCancel(t.Context())
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan int)
			go func() {
				p := Player{Call: c, Dir: t.TempDir(), Out: w, Now: now}
				code := p.Play(ctx)
				w.Close()
				done <- code
			}()
			lines := bufio.NewScanner(r)
			for range tt.wait {
				lines.Scan()
			}
			cancel()
			if code := <-done; code != 143 {
				t.Errorf("got exit code %d, want 143", code)
			}
			for lines.Scan() {
				if strings.Contains(lines.Text(), "result") {
					t.Errorf("got the result %s, want no result", lines.Text())
				}
			}
			r.Close()
		})
	}
}

// No step writes outside of the workspace, also not through an existing link.
func TestPlayStaysInTheWorkspace(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "kept"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for link, to := range map[string]string{"out": outside, "file": filepath.Join(outside, "kept"), "builder_reports": outside} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []Step{
		{Write: "out/new", Text: "x"}, {Write: "file", Text: "x"}, {Append: "file", Text: "x"},
		{Delete: "out/kept"}, {Report: str("x")}, {Write: "../x", Text: "x"},
	} {
		if code, _ := playCall(t, dir, ScriptCall{Role: "builder", Steps: []Step{s}}); code == 0 {
			t.Errorf("exit code of %+v: got 0, want an error", s)
		}
	}
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 1 || read(t, outside, "kept") != "kept" {
		t.Errorf("files outside: got %v, error %v, want only kept, unchanged", entries, err)
	}
}

// The output of a print step has its size, and all lines differ.
func TestPrint(t *testing.T) {
	for _, size := range []int64{1, 100, 1023, 1024, 1025, 2047, 2048, 5000, 1 << 20} {
		var out bytes.Buffer
		p := Player{Out: &out}
		p.print(size)
		if left := size % printLine; int64(out.Len()) != size && (left == 0 || left >= int64(printFrame) || int64(out.Len()) != size-left+int64(printFrame)) {
			t.Errorf("print %d: got %d bytes, want %d with a last line of at least %d",
				size, out.Len(), size, printFrame)
		}
		seen := map[string]bool{}
		for line := range strings.Lines(out.String()) {
			var r Record
			if err := json.Unmarshal([]byte(line), &r); err != nil || seen[r.Text] {
				t.Fatalf("print %d: got line %q, error %v, want a record with a new text", size, line, err)
			}
			seen[r.Text] = true
		}
	}
}

func TestLongOutputComesInPieces(t *testing.T) {
	_, records := playCall(t, t.TempDir(), ScriptCall{Steps: []Step{{Run: "head -c 200000 /dev/zero | tr '\\0' x; echo; printf end"}}})
	var all string
	for _, r := range records {
		if r.Type == RecordOutput {
			all += r.Text
		}
	}
	if want := strings.Repeat("x", 200000) + "end"; all != want {
		t.Errorf("got %d bytes of output, want %d", len(all), len(want))
	}
}
