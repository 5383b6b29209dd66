package rolestest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/testing/sandboxtest"
)

// Web is an app that listens on port 80.
var Web = &helper.App{Command: "serve", Port: 80}

// Broker returns the container of an app whose broker writes these events. Without events it ends
// immediately.
func Broker(t *testing.T, events string) sandboxtest.Script {
	return func(b sandbox.ContainerConfig) sandbox.Exit {
		err := os.WriteFile(sandboxtest.Host(b, helper.Events), []byte(events), 0o644)
		if err != nil && t.Context().Err() == nil { // a test that ended removes its folders
			panic(err)
		}
		if events != "" {
			<-t.Context().Done()
		}
		return sandbox.Exit{Code: 3}
	}
}

// OneCommit is a source whose last commit has one file.
type OneCommit struct {
	Tree string
	Err  error // of an export
}

// Tip returns the commit.
func (c OneCommit) Tip() (string, error) { return "c0ffee", nil }

// TreeHash returns Tree.
func (c OneCommit) TreeHash(string) (string, error) { return c.Tree, nil }

// Content returns the file.
func (c OneCommit) Content(string) (map[string]string, error) {
	return map[string]string{"a": "0100644 1"}, nil
}

// ExportTo writes the file.
func (c OneCommit) ExportTo(_ context.Context, dir, _, _ string) error {
	return errors.Join(c.Err, os.WriteFile(filepath.Join(dir, "a"), []byte("text of the commit"), 0o644))
}
