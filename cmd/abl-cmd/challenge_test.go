//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
	"abl/internal/witness"
)

// as starts the helper under a name.
func as(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), filepath.Join(bin, name), args...)
}

// said is the next line of a program's output as JSON.
func said[T any](t *testing.T, lines interface {
	Scan() bool
	Bytes() []byte
}) (v T) {
	t.Helper()
	if !lines.Scan() {
		t.Fatal("it says nothing")
	}
	if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
		t.Fatalf("%s: %v", lines.Bytes(), err)
	}
	return v
}

func TestNull(t *testing.T) {
	cmd := as(t, helper.HelperNull, "-empty", "127.0.0.1:0", "-trouble", "127.0.0.1:0", "-lines", "127.0.0.1:0", "-commands", "127.0.0.1:0", "-deadline", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
	at := said[struct{ Ready []string }](t, begin(t, cmd)).Ready
	if len(at) != 4 {
		t.Fatalf("it listens at %q", at)
	}
	for i, want := range []string{"200 ", "500 ", "200 " + witness.Planted, `200 {"exit":0}`} {
		resp, err := http.Get("http://" + at[i] + "/any")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if got := fmt.Sprintf("%d %s", resp.StatusCode, body); err != nil || got != want {
			t.Errorf("it answers %q, %v; want %q", got, err, want)
		}
		resp.Body.Close()
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("stopped, it ended with %v", err)
	}
	late := as(t, helper.HelperNull, "-commands", "127.0.0.1:0", "-deadline", fmt.Sprint(time.Now().Unix()))
	if r := finish(t, late); r.code != 0 || strings.Count(r.out, "ready") != 1 {
		t.Errorf("at its deadline: %+v", r)
	}
	for args, want := range map[string]string{
		"":                                "takes -empty",
		"-empty :0 x":                     "takes -empty",
		"-empty nowhere":                  "cannot serve",
		"-empty :0 -commands nowhere":     "cannot serve",
		"-empty 127.0.0.1:0 -deadline so": "invalid value",
	} {
		if r := finish(t, as(t, helper.HelperNull, strings.Fields(args)...)); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
