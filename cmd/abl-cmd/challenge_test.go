//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/internal/helper"
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

type readyAt struct{ Ready string }

func TestNull(t *testing.T) {
	cmd := as(t, helper.HelperNull, "-listen", "127.0.0.1:0", "-status", "500", "-deadline", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
	lines := begin(t, cmd)
	resp, err := http.Get("http://" + said[readyAt](t, lines).Ready + "/any")
	if err != nil || resp.StatusCode != 500 || resp.ContentLength != 0 {
		t.Errorf("%v, %v", resp, err)
	}
	cmd.Process.Signal(os.Interrupt)
	if err := cmd.Wait(); err != nil {
		t.Errorf("stopped, it ended with %v", err)
	}
	both := as(t, helper.HelperNull, "-listen", "127.0.0.1:0", "-commands", "127.0.0.1:0", "-deadline", fmt.Sprint(time.Now().Unix()))
	if r := finish(t, both); r.code != 0 || strings.Count(r.out, "ready") != 2 {
		t.Errorf("at its deadline: %+v", r)
	}
	for args, want := range map[string]string{
		"":                                 "takes -listen ADDRESS",
		"-listen :0 x":                     "takes -listen ADDRESS",
		"-listen :0 -status 99":            "takes -listen ADDRESS",
		"-listen nowhere":                  "cannot serve",
		"-listen :0 -commands nowhere":     "cannot serve",
		"-listen :0 -status many":          "invalid value",
		"-listen 127.0.0.1:0 -deadline so": "invalid value",
	} {
		if r := finish(t, as(t, helper.HelperNull, strings.Fields(args)...)); r.code != 2 || !strings.Contains(r.err, want) {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
