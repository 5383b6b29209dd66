//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"abl/internal/helper"

	"github.com/google/go-cmp/cmp"
)

// acpRecords are the records of abl-acp for the agent's actions.
const acpRecords = `{"type":"init","session":"s-1"}
{"type":"message","text":"I write a file."}
{"type":"tool","tool":"edit","text":"hello.txt"}
{"type":"output","text":"written"}
{"type":"tool","tool":"execute","text":"Run it"}
{"type":"output","text":"failed"}
{"type":"message","text":"Done."}
`

// abl-acp runs an agent through the Agent Client Protocol. It grants every permission, sets the
// model and the effort if the agent offers them, and prints records.
func TestACP(t *testing.T) {
	script, err := filepath.Abs("testdata/acp-agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, how, result string
		code              int
	}{
		{"well", "well", `{"type":"result","status":"success"}`, 0},
		{"refusal", "refusal", `{"type":"result","status":"error","error":"it ended with the stop reason \"refusal\""}`, 1},
		{"error", "error", `{"type":"result","status":"error","error":"session/prompt: Internal error: {\"details\":\"400 no\"}"}`, 1},
		{"exit", "exit", `{"type":"result","status":"error","error":"the agent exited before it responded, with exit code 3"}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := helperCommand(t, helper.HelperACP, nil, "sh "+script+" "+tt.how)
			cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader("Say \"@hello\" & `go`.")
			cmd.Env = append(os.Environ(), "ABL_MODEL=my-model", "ABL_EFFORT=max")
			r := finish(t, cmd)
			want := acpRecords + tt.result + "\n"
			if diff := cmp.Diff(want, r.out); diff != "" || r.code != tt.code {
				t.Errorf("exit code %d, want %d; records (-want +got)\n%s%s", r.code, tt.code, diff, r.err)
			}
			asked := read(t, filepath.Join(cmd.Dir, "asked"))
			for _, want := range []string{
				`"configId":"m","sessionId":"s-1","value":"x/my-model"`,
				`"configId":"think","sessionId":"s-1","value":"high"`,
				`{"text":"Say \"@hello\" \u0026 ` + "`go`" + `.","type":"text"}`,
				`{"jsonrpc":"2.0","id":"p1","result":{"outcome":{"optionId":"yes","outcome":"selected"}}}`,
				`{"jsonrpc":"2.0","id":"p2","error":{"code":-32601,"message":"Method not found"}}`,
			} {
				if !strings.Contains(asked, want) {
					t.Errorf("messages to the agent: got\n%s\nwant %s in them", asked, want)
				}
			}
		})
	}
}

// If abl-acp is stopped, it stops its agent and prints no result.
func TestACPStopped(t *testing.T) {
	script, err := filepath.Abs("testdata/acp-agent.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := helperCommand(t, helper.HelperACP, nil, "sh "+script+" hang")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader("Hello.")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := ""
	for buf := make([]byte, 4096); !strings.Contains(printed, `"failed"`); {
		n, err := out.Read(buf)
		if printed += string(buf[:n]); err != nil {
			t.Fatalf("standard output: got %q, error %v, want a line with %q", printed, err, "failed")
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // its exit code follows
	if code := cmd.ProcessState.ExitCode(); code != exitStopped || strings.Contains(printed, "result") {
		t.Errorf("got exit code %d with output %s, want %d and no result", code, printed, exitStopped)
	}
}
