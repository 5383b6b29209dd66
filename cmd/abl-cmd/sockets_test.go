//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/helper"
	"abl/internal/witness"
)

// as starts the helper under a name.
func as(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
}

// holding starts a holder and returns its addresses other than the one for DNS.
func holding(t *testing.T, args ...string) (cmd *exec.Cmd, at []string) {
	t.Helper()
	cmd = as(t, helper.HelperHolder, append([]string{"-listen", "127.0.0.1:0"}, args...)...)
	lines := begin(t, cmd)
	if !lines.Scan() {
		t.Fatal("first line of the holder: got none, want its addresses")
	}
	words := strings.Fields(lines.Text())
	if len(words) < 3 || words[0] != "listening" {
		t.Fatalf("first line of the holder: got %q, want %q and its addresses", lines.Text(), "listening")
	}
	return cmd, words[3:]
}

func ended(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("end after an interrupt: got error %v, want none", err)
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, body)
}

// Requests to the app pass through two holders, which share a folder with sockets, and are
// recorded.
func TestSockets(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.URL.Path) }))
	shared, record := t.TempDir(), filepath.Join(t.TempDir(), "record")
	for _, left := range []string{record, filepath.Join(shared, "app")} { // of a holder that was killed
		if err := os.WriteFile(left, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	inside, _ := holding(t, "-pass", shared+"/app="+app.Listener.Addr().String(), "-pass", shared+"/broker=127.0.0.1:1")
	tests, at := holding(t, "-watch", "127.0.0.1:0="+shared+"/app", "-record", record, "-pass", "127.0.0.1:0="+shared+"/broker")
	if got := fetch(t, "http://"+at[1]+"/a"); got != "200 hello /a" {
		t.Errorf("GET /a through the witness: got %s, want 200 hello /a", got)
	}
	if got := fetch(t, "http://"+at[0]+"/"); !strings.Contains(got, "connection reset") {
		t.Errorf("where nobody listens: got %s, want a reset connection", got)
	}
	app.Close()
	if got := fetch(t, "http://"+at[1]+"/b"); !strings.Contains(got, "connection reset") && !strings.Contains(got, "EOF") {
		t.Errorf("once the app has gone: got %s, want a connection that is closed", got)
	}
	ended(t, tests)
	ended(t, inside)
	f, err := os.Open(record)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	seen, err := witness.ReadRecord(f)
	if err != nil || len(seen) != 2 || seen[0].Request() != "GET /a" || string(seen[0].Got.Begins) != "hello /a" || seen[1].Status != 0 {
		t.Errorf("record: got %+v, error %v, want a response to GET /a and a connection without a response", seen, err)
	}
}

func TestAltering(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	defer app.Close()
	claim, ok := witness.ReadClaim("", "GET /a", "200")
	if !ok {
		t.Fatal("claim of GET /a: got none, want one")
	}
	data, err := json.Marshal(witness.Altering{Answers: []witness.Altered{{Claim: claim, What: witness.OfStatus}}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"record": nil, "altering.json": data} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests, at := holding(t, "-watch", "127.0.0.1:0="+app.Listener.Addr().String(), "-record", dir+"/record", "-altering", dir+"/altering.json")
	for url, want := range map[string]string{"/a": "500 hello", "/b": "200 hello"} {
		if got := fetch(t, "http://"+at[0]+url); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
	ended(t, tests)
}

func TestStandIns(t *testing.T) {
	cmd, at := holding(t, "-null", "127.0.0.1:0=500", "-commands", "127.0.0.1:0", "-sockets", t.TempDir())
	for i, want := range []string{"500 ", `200 {"exit":0}`} {
		if got := fetch(t, "http://"+at[i]+"/any"); got != want {
			t.Errorf("it answers %q, want %q", got, want)
		}
	}
	ended(t, cmd)
	for args, want := range map[string]string{
		"-null nowhere=200":                   "cannot serve",
		"-null :0=none":                       "want a number",
		"-pass nowhere":                       "want FROM=TO",
		"-watch :0=/sockets -record /nowhere": "cannot open the record",
		"-watch :0=/sockets -record /dev/null -altering /nowhere": "cannot read how to alter responses",
		"-pass /nowhere/app=127.0.0.1:1":                          "cannot serve",
	} {
		if r := finish(t, as(t, helper.HelperHolder, append([]string{"-listen", "127.0.0.1:0"}, strings.Fields(args)...)...)); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: got %+v, want %q", args, r, want)
		}
	}
}
