//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNameUser(t *testing.T) {
	image, home := t.TempDir(), t.TempDir()
	if err := nameUser(image, home, 7, 8); err == nil {
		t.Error("user of an image without files: got no error, want one")
	}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/bash\nagent:x:1:1::/:/bin/sh\nnode:x:7:8::/home/node:/bin/sh\n",
		"group":  "root:x:0:\nnode:x:8:\n",
	} {
		if err := os.WriteFile(filepath.Join(image, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := nameUser(image, home, 7, 8); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		".passwd": "agent:x:7:8::" + home + ":/bin/sh\nroot:x:0:0:root:/root:/bin/bash\nnode:x:7:8::/home/node:/bin/sh\n",
		".group":  "agent:x:8:\nroot:x:0:\nnode:x:8:\n",
	} {
		if got, err := os.ReadFile(filepath.Join(home, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}
