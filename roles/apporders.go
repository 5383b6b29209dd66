package roles

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
)

// token is the app's word for this call: the one it had already, since a
// Verifier that an earlier abl started may know it, or a new one.
func (a *App) token(key string) (string, error) {
	var old helper.BrokerSpec
	if ok, err := readJSON(a.orders(key), &old); err != nil || ok && old.Token != "" {
		return old.Token, err
	}
	token := make([]byte, 16)
	rand.Read(token) // never fails
	return hex.EncodeToString(token), nil
}

// orders is the broker's file of a call.
func (a *App) orders(key string) string { return filepath.Join(a.dir(key), "in", "broker.json") }

// layOut writes the broker's orders and the two files that take its words.
func (a *App) layOut(key string) (helper.BrokerSpec, error) {
	spec := a.Spec
	token, err := a.token(key)
	if err != nil {
		return spec, err
	}
	spec.Deadline = time.Now().Add(a.Life).Unix()
	spec.Token, spec.Events, spec.Log, spec.Probe = token, helper.Events, helper.AppLog, helper.Probe
	data, err := json.Marshal(spec)
	if err != nil {
		return spec, fmt.Errorf("internal error: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(a.orders(key)), 0o755); err != nil {
		return spec, err
	}
	if err := os.MkdirAll(a.Project.Empty(), 0o755); err != nil {
		return spec, err
	}
	if err := os.Remove(filepath.Join(a.dir(key), endFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return spec, err
	}
	if err := a.makeOver(filepath.Join(a.dir(key), "events"), filepath.Join(a.dir(key), "app.log")); err != nil {
		return spec, err
	}
	if err := hostfs.Write(a.orders(key), data, 0o644); err != nil {
		return spec, err
	}
	failpoint.Here("app.orders")
	return spec, nil
}
