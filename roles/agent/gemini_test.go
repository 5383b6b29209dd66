package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/outcome"

	"github.com/google/go-cmp/cmp"
)

// show returns a result in one line, "-" for an unknown value.
func show(r Result) string {
	figure := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	var b strings.Builder
	if fmt.Fprintf(&b, "finished=%t requests=%d", r.Finished, r.Requests); r.Reason != "" {
		fmt.Fprintf(&b, " %q", r.Reason)
	}
	for _, u := range r.Usage {
		fmt.Fprintf(&b, " | %s in=%s out=%s cached=%s thoughts=%s tool=%s total=%s", u.Model, figure(u.Input),
			figure(u.Candidates), figure(u.Cached), figure(u.Thoughts), figure(u.Tool), figure(u.Total))
	}
	return b.String()
}

const pro = " | gemini-2.5-pro "

// Outputs of the real CLI with a stub of the API, with the CLI's exit code. Nearly half of the
// unfinished ones have exit code 0.
func TestGeminiSamples(t *testing.T) {
	tests := []struct {
		sample string // in testdata/gemini; "" for a run that printed nothing on standard output
		exit   int
		want   string
	}{
		{"ok-streamjson", 0, "finished=true requests=-1" + pro + "in=6000 out=60 cached=600 thoughts=- tool=- total=6120"},
		{"ok-text", 0, `finished=false requests=-1 "gemini ended without a result record, with exit code 0"`},
		{"session-chats.jsonl", 0, `finished=false requests=-1 "gemini ended without a result record, with exit code 0"`},
		{"sigterm-streamjson", 0, `finished=false requests=-1 "gemini ended without a result record, with exit code 0"`},
		{"empty-streamjson", 0, `finished=false requests=-1 "gemini stopped: Model stream ended without a finish reason"` +
			pro + "in=0 out=0 cached=0 thoughts=- tool=- total=0"},
		{"safety-streamjson", 0, `finished=false requests=-1 "gemini stopped: The model response was blocked due to safety settings"` +
			pro + "in=3000 out=30 cached=300 thoughts=- tool=- total=3060"},
		{"loopdetected-streamjson", 0, `finished=false requests=-1 "gemini stopped: Loop detected, stopping execution"` +
			pro + "in=10000 out=100 cached=1000 thoughts=- tool=- total=10200"},
		{"maxtok-streamjson", 0, `finished=false requests=-1 "gemini ended without using a tool, so it did not work on its task"` +
			pro + "in=1000 out=10 cached=100 thoughts=- tool=- total=1020"},
		{"fail-maxturns-streamjson", 53, `finished=false requests=-1 "gemini failed, exit code 53 (too many turns): Reached max session turns for this session. ` +
			`Increase the number of turns by specifying maxSessionTurns in settings.json"` + pro + "in=6000 out=60 cached=600 thoughts=- tool=- total=6120"},
		{"fail-e401-streamjson", 145, `finished=false requests=-1 "gemini failed, exit code 145 (HTTP status 401): [API Error: ` +
			`{\"error\":{\"code\":401,\"message\":\"stub says 401\",\"status\":\"UNAUTHENTICATED\"}}]"` + pro + "in=0 out=0 cached=0 thoughts=- tool=- total=0"},
		{"fail-e500_after-streamjson", 244, `finished=false requests=-1 "gemini failed, exit code 244 (HTTP status 500): [API Error: ` +
			`{\"error\":{\"code\":500,\"message\":\"stub says 500\",\"status\":\"INTERNAL\"}}]"` + pro + "in=1000 out=10 cached=100 thoughts=- tool=- total=1020"},
		{"", 1, silent("exit code 1")},                            // bad JSON, 404, refused, reset, cut and malformed streams, text mode
		{"", 41, silent("exit code 41 (no usable login or key)")}, // no key
		{"", 53, silent("exit code 53 (too many turns)")},         // -o json
		{"", 124, silent("exit code 124")},                        // a silent server, ended from outside
		{"", 144, silent("exit code 144 (HTTP status 400)")},      // -o json
		{"", 145, silent("exit code 145 (HTTP status 401)")},      // -o json
		{"", 147, silent("exit code 147 (HTTP status 403)")},      // -o json
		{"", 173, silent("exit code 173 (HTTP status 429)")},      // -o json
		{"", 244, silent("exit code 244 (HTTP status 500)")},      // -o json
		{"", 247, silent("exit code 247 (HTTP status 503)")},      // -o json
		{"ok-streamjson", 137, "finished=false requests=-1 \"gemini failed: exit code 137\"" + pro + "in=6000 out=60 cached=600 thoughts=- tool=- total=6120"},
	}
	seen := map[string]bool{"": true}
	for _, tt := range tests {
		seen[tt.sample] = true
		t.Run(fmt.Sprintf("%s/%d", tt.sample, tt.exit), func(t *testing.T) {
			got := Usages(gemini, sample(t, tt.sample), tt.exit)
			if diff := cmp.Diff(tt.want, show(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.Finished != (got.Reason == "") {
				t.Errorf("result: got finished %t with the reason %q, want a reason unless finished",
					got.Finished, got.Reason)
			}
		})
	}
	files, err := filepath.Glob("testdata/gemini/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("tests of the sample %s: got none, want one", f)
		}
	}
}

func silent(exit string) string {
	return fmt.Sprintf("finished=false requests=-1 %q", "gemini ended without a result record, with "+exit)
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	if name == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join("testdata", "gemini", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGeminiActionsAndSession(t *testing.T) {
	actions, session, said := follow(t, gemini, "ok-streamjson")
	want := []string{"write_file hello.txt", "shell echo SHELLOK; id; pwd; env | cut -d= -f1 | sort | tr …", "All done: wrote hello.txt and ran a command."}
	if diff := cmp.Diff(want, actions); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if session != "12a975e7-a214-40be-a2a7-ac3faaa80495" || said != want[2] {
		t.Errorf("session and last message: got %q, %q, want %q, %q",
			session, said, "12a975e7-a214-40be-a2a7-ac3faaa80495", want[2])
	}
}

func TestGeminiHostileLines(t *testing.T) {
	good := `{"type":"result","status":"success","stats":{"tool_calls":2,"models":{"m":{"total_tokens":7,"input_tokens":5,"output_tokens":2,"cached":0}}}}`
	row := " | m in=5 out=2 cached=0 thoughts=- tool=- total=7"
	tests := []struct {
		name  string
		lines []string
		cut   bool
		want  string
	}{
		{"noise around it", []string{"", "{", "YOLO mode", "[]", "null", `{"type":7}`, good, "\x00\xff", `{"type":"message"}`}, false, "finished=true requests=-1" + row},
		{"a field of another type", []string{`{"type":"init","session_id":{}}`, strings.Replace(good, `"status"`, `"message":{},"status"`, 1)}, false, "finished=true requests=-1" + row},
		{"invalid figures", []string{`{"type":"result","status":"success","stats":{"tool_calls":1,"models":{"m":{"total_tokens":7,"input_tokens":-5,"output_tokens":1.5,"cached":"3"}}}}`},
			false, "finished=true requests=-1 | m in=- out=- cached=- thoughts=- tool=- total=7"},
		{"a total too large to be one", []string{strings.Replace(good, ":7,", ":1e99,", 1)}, false,
			`finished=false requests=-1 "gemini ended without a model request that used a token" | m in=5 out=2 cached=0 thoughts=- tool=- total=-`},
		{"the result was cut", []string{good}, true, `finished=false requests=-1 "gemini ended without a readable result record: a line was too long"`},
		{"another status", []string{strings.Replace(good, "success", `paused\u001b[2J`, 1)}, false, `finished=false requests=-1 "gemini reports the status \"paused [2J\""` + row},
		{"the last result counts", []string{good, `{"type":"result","status":"error","stats":{}}`}, false, `finished=false requests=-1 "gemini reports the status \"error\""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := gemini.NewReader(Call{})
			for _, l := range tt.lines {
				r.Line([]byte(l), tt.cut)
			}
			if diff := cmp.Diff(tt.want, show(r.Result(0))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestGeminiCommand(t *testing.T) {
	c := Call{Role: "builder", Phase: 2, Iteration: 3, Attempt: 1, Model: gemini.DefaultModel, Session: "1b4e28ba-2fa1-41d2-883f-0016d3cca427", Prompt: "/abl/in/prompt.md"}
	cmd, err := gemini.Command(c)
	if err != nil {
		t.Fatal(err)
	}
	want := "gemini -m gemini-3.8-flash --approval-mode yolo -o stream-json -e none --policy /etc/abl/gemini-policy.toml" +
		" --include-directories /workspace/specs,/abl/in --session-id 1b4e28ba-2fa1-41d2-883f-0016d3cca427"
	if got := strings.Join(cmd.Argv, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if cmd.Env["GEMINI_CLI_NO_RELAUNCH"] != "1" || cmd.Env["HOME"] == "" {
		t.Errorf("environment: got %v, want one with GEMINI_CLI_NO_RELAUNCH=1 and a HOME", cmd.Env)
	}
	p := gemini.Provider
	if p != (Provider{Login: "key", API: "gemini", KeyVar: "GEMINI_API_KEY", BaseVar: "GOOGLE_GEMINI_BASE_URL"}) {
		t.Errorf("provider: got %+v, want the API gemini with the key in GEMINI_API_KEY", p)
	}
	if _, ok := cmd.Env[p.KeyVar]; ok {
		t.Errorf("variable %s: got one that is not secret, want none", p.KeyVar)
	}
}

func TestGeminiTrouble(t *testing.T) {
	for _, c := range []struct {
		sample string
		exit   int
		want   outcome.Outcome
	}{
		{"ok-streamjson", 0, ""},
		{"fail-e429", 173, outcome.RateLimited},
		{"fail-e500", 244, outcome.Unavailable},
		{"fail-e503", 247, outcome.Unavailable},
		{"fail-e401-streamjson", 145, outcome.Refused},
		{"fail-e403", 147, outcome.Refused},
		{"fail-nokey", 41, outcome.Refused},
		{"fail-e400", 144, ""},
		{"safety-streamjson", 0, ""},
	} {
		t.Run(c.sample, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "gemini", c.sample))
			if err != nil && c.exit == 0 {
				t.Fatal(err)
			}
			res := Usages(gemini, data, c.exit)
			if res.Trouble != c.want {
				t.Errorf("trouble: got %q, want %q (%s)", res.Trouble, c.want, res.Reason)
			}
		})
	}
	for _, c := range []struct {
		status, message, stats string
		exit                   int
		want                   outcome.Outcome
	}{
		{"error", "exception TypeError: fetch failed sending request", "", 1, outcome.Network},
		{"error", "API key not valid. Please pass a valid API key.", "", 144, outcome.Refused},
		{"error", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", "", 144, outcome.TooLarge},
		{"error", "Quota exceeded for quotaId: GenerateRequestsPerDayPerProject", "", 173, outcome.Quota},
		{"error", "Quota exceeded", "", 173, outcome.RateLimited},
		{"success", "", "", 0, outcome.Nothing},
		{"success", "", `"tool_calls":0,"models":{"m":{"total_tokens":9}}`, 0, outcome.Nothing},
	} {
		record := `{"type":"result","status":"` + c.status + `","stats":{` + c.stats + `}`
		if c.message != "" {
			record += `,"error":{"type":"Error","message":"` + c.message + `"}`
		}
		if res := Usages(gemini, []byte(`{"type":"init","session_id":"s"}`+"\n"+record+"}\n"), c.exit); res.Trouble != c.want {
			t.Errorf("trouble of %s %q: got %q, want %q (%s)", c.status, c.message, res.Trouble, c.want, res.Reason)
		}
	}
}
