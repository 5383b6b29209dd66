package cli_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
)

func TestCommandLines(t *testing.T) {
	const rest = ` agent="" progress="auto" quiet=false`
	cases := map[string]string{
		"phase 3":                     `args=["3"] json=false iterations=5` + rest,
		"p 3":                         `args=["3"] json=false iterations=5` + rest,
		"phase 3 --json":              `args=["3"] json=true iterations=5` + rest + " +json",
		"phase --json 3":              `args=["3"] json=true iterations=5` + rest + " +json",
		"phase 3 --json=false":        `args=["3"] json=false iterations=5` + rest + " +json",
		"phase PHASE=3 --json":        `args=["PHASE=3"] json=true iterations=5` + rest + " +json",
		"phase -n 7 3":                `args=["3"] json=false iterations=7` + rest,
		"phase 3 -json":               `args=["3"] json=true iterations=5` + rest + " +json",
		"phase 3 -n=7":                `args=["3"] json=false iterations=7` + rest,
		"--json phase 3":              `args=["3"] json=true iterations=5` + rest + " +json",
		"phase -1":                    `args=["-1"] json=false iterations=5` + rest,
		"phase -":                     `args=["-"] json=false iterations=5` + rest,
		"phase -- --json":             `args=["--json"] json=false iterations=5` + rest,
		"phase --iterations -2 1":     `args=["1"] json=false iterations=-2` + rest,
		"--progress plain phase 3":    `args=["3"] json=false iterations=5 agent="" progress="plain" quiet=false`,
		"phase 3 --progress=plain -q": `args=["3"] json=false iterations=5 agent="" progress="plain" quiet=true`,
		"phase 3 --agent= ":           `args=["3"] json=false iterations=5` + rest + " +agent",
		"phase 3 --agent x --agent y": `args=["3"] json=false iterations=5 agent="y" progress="auto" quiet=false +agent`,
		"phase json":                  `args=["json"] json=false iterations=5` + rest,
		"images build":                "images build",
		"images save f --force":       "images save",
		"config path":                 "config path",
		"config key path":             `args=["key" "path"] json=false iterations=0` + rest,
		"--version":                   "abl 1.2.3",
	}
	for args, want := range cases {
		code, out, stderr := run(t.Context(), odd(), strings.Fields(args)...)
		if code != 0 || out != want+"\n" || stderr != "" {
			t.Errorf("abl %s: exit %d, stderr %q\n got %s\nwant %s", args, code, stderr, out, want)
		}
	}
}

func TestVariables(t *testing.T) {
	t.Setenv("ABL_AGENT", "gemini")
	t.Setenv("ABL_PROGRESS", "json")
	_, out, _ := call(t.Context(), "phase", "1")
	if want := `agent="gemini" progress="json" quiet=false +agent`; !strings.Contains(out, want) {
		t.Errorf("settings from variables: got %s, want %s in it", out, want)
	}
	_, out, _ = call(t.Context(), "phase", "1", "--agent", "claude")
	if want := `agent="claude"`; !strings.Contains(out, want) {
		t.Errorf("flag over its variable: got %s, want %s in it", out, want)
	}
	t.Setenv("ABL_PROGRESS", "loud")
	code, _, stderr := call(t.Context(), "phase", "1")
	if want := `abl: ABL_PROGRESS or --progress must be auto, tty, plain or json, not "loud"`; code != exit.Usage || !strings.HasPrefix(stderr, want+"\n") {
		t.Errorf("ABL_PROGRESS=loud: got exit code %d, stderr %q, want %d and %q", code, stderr, exit.Usage, want)
	}
}

func TestMisuse(t *testing.T) {
	see := "see abl phase --help"
	cases := []struct{ args, what, hint string }{
		{"phaze", `unknown command "phaze"`, `did you mean "phase"?`},
		{"xyzzy", `unknown command "xyzzy"`, "see abl --help"},
		{"images biuld", `unknown command "images biuld"`, `did you mean "images build"?`},
		{"images", "images needs a command: build or save", "see abl images --help"},
		{"help phaze", `unknown command "phaze"`, `did you mean "phase"?`},
		{"help exit-code", `unknown command "exit-code"`, `did you mean "exit-codes"?`},
		{"lint", `unknown command "lint"`, "use abl images build"},
		{"clean 2", `clean takes no arguments, but got "2"`, "use abl phase 2"},
		{"-v", `unknown flag "-v" of abl`, "use --version"},
		{"phase", "phase needs N", see},
		{"phase 1 2 3", `phase takes only N, but got "2"`, see},
		{"clean up", `clean takes no arguments, but got "up"`, "see abl clean --help"},
		{"phase 1 --jsno", `unknown flag "--jsno" of abl phase`, "did you mean --json?"},
		{"phase 1 --frobnicate", `unknown flag "--frobnicate" of abl phase`, see},
		{"phase 1 -n7", `unknown flag "-n7" of abl phase`, "did you mean -n 7?"},
		{"phase 1 -jsno", `unknown flag "-jsno" of abl phase`, "did you mean --json?"},
		{"phase 1 -z", `unknown flag "-z" of abl phase`, see},
		{"--jsno", `unknown flag "--jsno" of abl`, "see abl --help"},
		{"--prgress plain", `unknown flag "--prgress" of abl`, "did you mean --progress?"},
		{"phase 1 --agent", "--agent needs a value: NAME", see},
		{"phase 1 --json=maybe", `invalid boolean value "maybe" for -json: parse error`, see},
		{"phase 1 --iterations many", `--iterations must be a whole number, not "many"`, see},
		{"phase 1 --progress plian", `--progress must be auto, tty, plain or json, not "plian"`, "did you mean --progress plain?"},
		{"phase 1 --progress loud", `--progress must be auto, tty, plain or json, not "loud"`, see},
		{"misuse", "wrapped: phase 0 does not exist", "see abl misuse --help"},
		{"completion tcsh", `completion takes bash, zsh or fish, not "tcsh"`, "see abl completion --help"},
	}
	for _, c := range cases {
		code, out, stderr := run(t.Context(), odd(), strings.Fields(c.args)...)
		if want := "abl: " + c.what + "\nabl: hint: " + c.hint + "\n"; code != exit.Usage || out != "" || stderr != want {
			t.Errorf("abl %s: exit %d, stdout %q\n got %s\nwant %s", c.args, code, out, stderr, want)
		}
	}
}

func TestHowCommandsEnd(t *testing.T) {
	t.Setenv("ABL_DEBUG", "")
	cases := []struct {
		args   string
		code   int
		stderr string
	}{
		{"known", exit.Busy, "abl: cannot go on: known trouble\nabl: hint: wait for it\n"},
		{"hint", exit.Stuck, "abl: it is stuck; all is kept\nabl: hint: repair it\n"},
		{"panic", exit.Bug, "abl: internal error: lost my way\nabl: hint: this is a bug: run it again with ABL_DEBUG=1 and report the output\n"},
	}
	for _, c := range cases {
		code, out, stderr := run(t.Context(), odd(), c.args)
		if code != c.code || stderr != c.stderr || out != "" {
			t.Errorf("abl %s: got exit code %d, stdout %q, stderr %q, want %d, none and %q",
				c.args, code, out, stderr, c.code, c.stderr)
		}
	}
	code, _, stderr := run(t.Context(), odd(), "odd")
	if code != exit.Bug || strings.ContainsAny(stderr, "\x1b") || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "abl: first; ") {
		t.Errorf("odd words: got exit code %d, stderr %q, want %d and one clean line", code, stderr, exit.Bug)
	}
}

func TestPanicShowsItsStackOnRequest(t *testing.T) {
	t.Setenv("ABL_DEBUG", "1")
	code, _, stderr := run(t.Context(), odd(), "panic")
	if code != exit.Bug || !strings.Contains(stderr, "demo_test.go") || strings.Contains(stderr, "hint") {
		t.Errorf("panic with ABL_DEBUG: got exit code %d, stderr %q, want %d, the stack and no hint",
			code, stderr, exit.Bug)
	}
}

func TestSignalDecidesTheCode(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(exit.Signal{Number: syscall.SIGTERM})
	code, _, stderr := run(ctx, odd(), "gone")
	if code != exit.TERM || !strings.HasPrefix(stderr, "abl: interrupted by SIGTERM; everything is saved") {
		t.Errorf("SIGTERM: got exit code %d, stderr %q, want %d and that abl was interrupted", code, stderr, exit.TERM)
	}
}

func TestReaderThatLeavesIsNoFailure(t *testing.T) {
	app := cli.App{Name: "abl", Commands: []cli.Command{{Name: "cat", Run: func(context.Context, *cli.Input) error {
		return &fs.PathError{Op: "write", Path: os.Stdout.Name(), Err: syscall.EPIPE}
	}}}}
	var stderr strings.Builder
	if code := cli.Main(t.Context(), app, []string{"cat"}, nil, nil, &stderr); code != 0 || stderr.Len() > 0 {
		t.Errorf("output to a closed pipe: got exit code %d, stderr %q, want 0 and none", code, stderr.String())
	}
}

// A flag sets the variable that it is bound to, before Run.
func TestBoundFlags(t *testing.T) {
	type options struct {
		All  bool
		By   string
		Step int
	}
	for _, c := range []struct {
		args string
		want options
		err  string
	}{
		{"list", options{By: "role"}, ""},
		{"list --all --by model --step 3", options{All: true, By: "model", Step: 3}, ""},
		{"list --step 0", options{}, "abl: --step must be a positive number, not 0\n"},
		{"list --step x", options{}, "abl: --step must be a whole number, not \"x\"\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var o, got options
			code, _, stderr := run(t.Context(), cli.App{Name: "abl", Commands: []cli.Command{{
				Name: "list",
				Flags: []cli.Flag{
					{Name: "all", To: &o.All},
					{Name: "by", To: &o.By, Value: "WHAT", Default: "role"},
					{Name: "step", To: &o.Step, Value: "N"},
				},
				Run: func(context.Context, *cli.Input) error {
					got = o
					return nil
				},
			}}}, strings.Fields(c.args)...)
			if got != c.want || (code == exit.Usage) != (c.err != "") || !strings.HasPrefix(stderr, c.err) {
				t.Errorf("got %+v, exit %d, %q, want %+v, %q", got, code, stderr, c.want, c.err)
			}
		})
	}
}
