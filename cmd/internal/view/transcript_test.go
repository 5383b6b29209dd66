package view

import (
	"strings"
	"testing"

	"abl/internal/ledger"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/roles/agent"

	"github.com/google/go-cmp/cmp"
)

func TestTranscript(t *testing.T) {
	const key = "sk-canary-4711"
	safe := redact.NewSanitizer([]string{"API_KEY=" + key, "PEM_KEY=line-one-4711\nline-two-4711"})
	for _, tt := range []struct {
		name    string
		message agent.Message
		want    string
	}{
		{"words", agent.Message{Kind: agent.Said, Text: "\nI begin\n\n  with " + key + "\n"}, "builder │ I begin\nbuilder │ \nbuilder │   with [secret …11]\n"},
		{"what looks like a heading", agent.Message{Kind: agent.Said, Text: "a\n── done after 1s\r\x1b[2J"}, "builder │ a\nbuilder │ ── done after\nbuilder │ 1s\\x0d\\x1b[2J\n"},
		{"a call", agent.Message{Kind: agent.Called, Text: "run a\nb", Detail: "more"}, "builder │ > run a b\n"},
		{"a result", agent.Message{Kind: agent.Returned, Text: "failed", Detail: "1\n2\n3\n4\n5\n6\n7\n"}, "builder │     failed\nbuilder │     1\nbuilder │     2\nbuilder │     3\nbuilder │     4\nbuilder │     5\nbuilder │     … 2 more lines\n"},
		{"a result that is cut itself", agent.Message{Kind: agent.Returned, Detail: "1\n2\n3\n4\n5\n6\n7\n8\n… 9 more bytes"}, "builder │     1\nbuilder │     2\nbuilder │     3\nbuilder │     4\nbuilder │     5\nbuilder │     6\nbuilder │     … 3 more lines\nbuilder │     … 9 more bytes\n"},
		{"one line more", agent.Message{Kind: agent.Returned, Detail: "1\n2\n3\n4\n5\n6\n7"}, "builder │     1\nbuilder │     2\nbuilder │     3\nbuilder │     4\nbuilder │     5\nbuilder │     6\nbuilder │     7\n"},
		{"a secret of two lines", agent.Message{Kind: agent.Returned, Detail: "line-one-4711\nline-two-4711"}, "builder │     [secret …11]\n"},
		{"a secret at the end of what is shown", agent.Message{Kind: agent.Returned, Detail: "failed" + strings.Repeat(" x", 143) + " " + key}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			shows := Transcript{Out: &out, Safe: safe, Who: "builder", Columns: 34}
			shows.Show(tt.message)
			got := out.String()
			if strings.Contains(got, "sk-c") || strings.Contains(got, "line-") {
				t.Errorf("output: got\n%s\nwant no part of the secret", got)
			}
			if cut := strings.HasSuffix(got, "…\n"); cut != (tt.want == "") {
				t.Errorf("cut: got %t, want %t for\n%s", cut, tt.want == "", got)
			}
			if diff := cmp.Diff(tt.want, got); tt.want != "" && diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for row := range strings.Lines(out.String()) {
				if !strings.HasPrefix(row, "builder │ ") || len([]rune(row)) > 35 {
					t.Errorf("row: got %q, want one with the prefix in at most 35 columns", row)
				}
			}
		})
	}
}

func TestUsedText(t *testing.T) {
	n := int64(12345)
	for _, tt := range []struct {
		rows []ledger.Row
		want string
	}{
		{[]ledger.Row{{Count: usage.Count{Total: &n}, CostUSD: "0.1"}}, "12,345 tokens, 0.10 USD"},
		{[]ledger.Row{{Count: usage.Count{Total: &n}}}, "12,345 tokens, cost unknown"},
		{[]ledger.Row{{Source: ledger.Nobody}}, "tokens unknown, cost unknown"},
		{[]ledger.Row{{Count: usage.Count{Total: &n}, CostUSD: "0.1"}, {Source: ledger.Nobody}}, "at least 12,345 tokens, at least 0.10 USD"},
	} {
		totals := ledger.Totals{Price: func(r ledger.Row) (usage.USD, bool) { return r.Cost() }}
		for _, r := range tt.rows {
			totals.Add(r)
		}
		if got := UsedWords(totals.Account().All); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
