package lab

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/roles/agent"
)

// Events decodes the events that a run printed with --json.
func Events(t testing.TB, r Result) (all []state.Event) {
	t.Helper()
	for line := range strings.Lines(r.Stdout) {
		var e state.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line of the output: got %v, want an event: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}

// Scenario returns a scenario file with these calls. The file is JSON, without raw control
// characters, because abl reads it as YAML.
func Scenario(t testing.TB, calls ...agent.ScriptCall) []byte {
	t.Helper()
	data, err := json.Marshal(agent.Scenario{Version: agent.Version, Calls: calls})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	for _, r := range string(data) {
		if r < 0x7f {
			file.WriteRune(r)
		} else {
			fmt.Fprintf(&file, "\\U%08x", r)
		}
	}
	return file.Bytes()
}

// Of returns the events of one kind.
func Of(all []state.Event, kind state.Kind) (some []state.Event) {
	for _, e := range all {
		if e.Kind == kind {
			some = append(some, e)
		}
	}
	return some
}

// Ledger returns the rows of tokens.csv, by column name.
func (p *Project) Ledger() (rows []map[string]string) {
	p.Helper()
	all, err := csv.NewReader(strings.NewReader(p.Read(".abl/logs/tokens.csv"))).ReadAll()
	if err != nil || len(all) == 0 {
		p.Fatalf("cannot read tokens.csv: %v", err)
	}
	for _, fields := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = fields[i]
		}
		rows = append(rows, row)
	}
	return rows
}

// Printed returns the lines that the commands of a scripted call printed, without the record
// format.
func (p *Project) Printed(key string) string {
	p.Helper()
	text := p.Read(".abl/logs/calls/" + key + "/stdout")
	if text == "" {
		p.Errorf("output of call %s: got none, want some", key)
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		var r agent.Record
		if json.Unmarshal([]byte(line), &r) == nil && r.Type == agent.RecordOutput {
			b.WriteString(r.Text + "\n")
		}
	}
	return b.String()
}

// shown is the number of lines of a long text that a failure prints.
const shown = 30

// Wants fails the test for each text that have does not contain.
func Wants(t testing.TB, what, have string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(have, text) {
			t.Errorf("%s: got\n%s\nwant text with %q", what, LastLines(have, shown), text)
		}
	}
}

// Lacks fails the test for each text that have contains.
func Lacks(t testing.TB, what, have string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(have, text) {
			t.Errorf("%s: got\n%s\nwant text without %q", what, LastLines(have, shown), text)
		}
	}
}

// LastLines returns the last n lines of a text.
func LastLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "")
}

// Docker runs the docker command, which must succeed, and returns its output.
func Docker(t testing.TB, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out))
}
