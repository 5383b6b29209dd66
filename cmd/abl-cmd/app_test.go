//go:build linux

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
)

// runsApp returns a role of a project whose app is a program, and its exchange folder.
func runsApp(t *testing.T, name string) (helper.CmdSpec, string) {
	spec := role(t, name)
	spec.App = &helper.App{Kind: helper.KindCommand, Command: `sh "$ABL_SRC/app.sh"`, TimeoutMS: 60_000}
	write(t, filepath.Join(spec.Dir, "app.sh"), `case $1 in
swap) cat in.txt; rm in.txt; mkdir new; echo out > new/out.txt; ln -s /etc/passwd link; exit 7;;
cat) cat; pwd >&2;;
esac`)
	return spec, filepath.Join(t.TempDir(), "exchange")
}

func TestApp(t *testing.T) {
	spec, exchange := runsApp(t, "builder")
	app := func(dir, stdin string, args ...string) result {
		t.Helper()
		cmd := helperCommand(t, helper.HelperCmd, spec, append([]string{"app"}, args...)...)
		cmd.Env = append(os.Environ(), "ABL_EXCHANGE="+dir)
		cmd.Stdin = strings.NewReader(stdin)
		return finish(t, cmd)
	}
	write(t, filepath.Join(exchange, "in.txt"), "in\n")
	want := result{7, "in\n", `abl-cmd: "link" is left out: it is a link` + "\n"}
	if got := app(exchange, "", "swap"); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if left, _ := filepath.Glob(exchange + "/*"); len(left) != 1 || left[0] != exchange+"/new" {
		t.Errorf("files in the exchange folder: got %q, want only %q", left, exchange+"/new")
	}
	if data, err := os.ReadFile(exchange + "/new/out.txt"); string(data) != "out\n" {
		t.Errorf("out.txt: got %q, error %v, want %q", data, err, "out\n")
	}
	if got := app(exchange+"2", "std\x00in", "cat"); got.code != 0 || got.out != "std\x00in" || strings.Contains(got.err, spec.Dir) {
		t.Errorf("app cat: got %+v, want exit code 0, output %q and no %q in the errors", got, "std\x00in", spec.Dir)
	}
	if err := os.Symlink(spec.Dir, exchange+"3"); err != nil {
		t.Fatal(err)
	}
	for dir, why := range map[string]string{spec.Dir: "which contains your work", "/": "which contains your work", exchange + "3": "cannot pass on the files"} {
		if got := app(dir, "", "cat"); got.code != 125 || !strings.Contains(got.err, why) {
			t.Errorf("exchange folder %q: got %+v, want exit code 125 and %q", dir, got, why)
		}
	}
	spec.App = nil
	if got := app(exchange, "", "cat"); got.code != 2 {
		t.Errorf("app of a server: got %+v, want exit code 2", got)
	}
}

// For any response in the broker's place, abl-cmd exits with 125 or the response's code, and writes
// only below the exchange folder.
func TestAppAnswers(t *testing.T) {
	spec, exchange := runsApp(t, "verifier")
	reply := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, reply)
	}))
	defer server.Close()
	outside := write(t, filepath.Join(t.TempDir(), "outside"), "safe")
	write(t, filepath.Join(exchange, "f"), "old")
	for _, tt := range []struct {
		name, reply, err string
		code             int
	}{
		{"an exit code", `{"exit":3,"stdout":"aGk="}`, "", 3},
		{"none", `{"exit":0,"error":"too many commands are waiting"}`, "abl-cmd: too many commands are waiting", 125},
		{"abl-cmd's own", `{"exit":125}`, "the program itself ended with exit code 125", 125},
		{"a path that leads out", `{"files":{"../outside":"eA=="}}`, "is not a relative path inside", 125},
		{"an absolute path", `{"files":{"` + outside + `":"eA=="}}`, "is not a relative path inside", 125},
		{"no reply", `hello`, "cannot read the broker's reply", 125},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec.URL, reply = server.URL, tt.reply
			cmd := helperCommand(t, helper.HelperCmd, spec, "app")
			cmd.Env = append(os.Environ(), "ABL_EXCHANGE="+exchange)
			if got := finish(t, cmd); got.code != tt.code || !strings.Contains(got.err, tt.err) {
				t.Errorf("app: got %+v, want exit code %d and %q", got, tt.code, tt.err)
			}
		})
	}
	if data, err := os.ReadFile(outside); string(data) != "safe" {
		t.Errorf("file outside the folder: got %q, error %v, want %q", data, err, "safe")
	}
	server.Close()
	if got := finish(t, helperCommand(t, helper.HelperCmd, spec, "app")); got.code != 125 || !strings.Contains(got.err, "cannot reach the broker") {
		t.Errorf("app without a broker: got %+v, want exit code 125 and %q", got, "cannot reach the broker")
	}
}
