package git

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// signs creates a key with which git signs according to the user's global settings. It returns the
// settings.
func signs(t *testing.T) string {
	t.Helper()
	if since, err := gitSince(t.Context(), 2, 34); err != nil || !since {
		t.Skip("this git signs with no key of SSH")
	}
	home := t.TempDir()
	key := filepath.Join(home, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Skipf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(home, "signers"), append([]byte("u@example.com "), public...), 0o600))
	settings := filepath.Join(home, "config")
	t.Setenv("GIT_CONFIG_GLOBAL", settings)
	t.Setenv("HOME", home)
	for _, set := range [][2]string{
		{"user.name", "U"}, {"user.email", "u@example.com"}, {"commit.gpgsign", "true"}, {"gpg.format", "ssh"}, {"user.signingkey", key},
		{"gpg.ssh.allowedSignersFile", filepath.Join(home, "signers")},
	} {
		if out, err := exec.Command("git", "config", "--file", settings, set[0], set[1]).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return settings
}

// verified returns git's code for the signature of a commit: G for good, N for no signature.
func verified(t *testing.T, dir, commit string) string {
	t.Helper()
	out, err := exec.Command("git", "-C", dir, "log", "-1", "--format=%G?", commit).CombinedOutput()
	must(t, err)
	return strings.TrimSpace(string(out))
}

// Snapshots and merges are signed as the user's settings require, but never by a program that the
// repository configures.
func TestSigned(t *testing.T) {
	signs(t)
	dir := grown(t)
	ran := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	must(t, os.WriteFile(evil, fmt.Appendf(nil, "#!/bin/sh\ntouch %s\nexit 1\n", ran), 0o755))
	git(t, dir, "config", "gpg.ssh.program", evil)
	git(t, dir, "config", "gpg.program", evil)
	o := origin(t, dir)
	who, ok := o.User(t.Context())
	if !ok || who.String() != "U <u@example.com>" {
		t.Errorf("the user: got %v, %t, want U <u@example.com>", who, ok)
	}
	first := cloned(t, dir, ".abl")
	r, err := Open(first.Dir(), Options{Clone: true, Without: []string{".abl"}, Identity: Identity{
		Trailers: []string{"Co-authored-by: U <u@example.com>"}, Signing: o.Signing(t.Context()),
	}})
	must(t, err)
	must(t, r.CheckSigning(t.Context()))
	for n, name := range []string{"new.js", "run.sh"} { // a new folder, and one more file
		write(t, r.Dir(), map[string]string{name: "3", "deep/er/" + name: "4"})
		s := snapshot(t, r, "built", fmt.Sprintf("p1-build-%d.1", n+1))
		if got := verified(t, r.Dir(), s.Commit.Hash); got != "G" {
			t.Errorf("the signature of a snapshot: got %s, want G", got)
		}
		if again := snapshot(t, r, "built", fmt.Sprintf("p1-build-%d.1", n+1)); !again.Existing || again.Commit.Hash != s.Commit.Hash {
			t.Errorf("the snapshot of the same call: got %v, want the same commit", again)
		}
	}
	commitFiles(t, dir, map[string]string{"their.js": "t"})
	merged, err := takeIn(t, r, dir)
	must(t, err)
	if got := verified(t, r.Dir(), merged.Hash); got != "G" {
		t.Errorf("the signature of a merge: got %s, want G", got)
	}
	must(t, o.Receive(t.Context(), r, "refs/heads/abl/phase1", merged.Hash))
	if got := git(t, dir, "log", "-1", "--format=%an %ae %cn %ce%n%(trailers:only)", "abl/phase1^1"); got != "abl abl@localhost U u@example.com\nAbl-Call: p1-build-2.1\nCo-authored-by: U <u@example.com>" {
		t.Errorf("the commit: got %q, want abl as author, U as committer, and both trailers", got)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program that the repository names: got a run of it, want none")
	}
	sound(t, dir)
}

// A key that git cannot use is detected before a paid call.
func TestCannotSign(t *testing.T) {
	settings := signs(t)
	if out, err := exec.Command("git", "config", "--file", settings, "user.signingkey", "/nowhere/key").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dir := grown(t)
	first := cloned(t, dir)
	r, err := Open(first.Dir(), Options{Clone: true, Identity: Identity{Signing: origin(t, dir).Signing(t.Context())}})
	must(t, err)
	if err := r.CheckSigning(t.Context()); !errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "commit.gpgsign") {
		t.Errorf("got %v, want that it names commit.gpgsign", err)
	}
	unsigned, err := Open(first.Dir(), Options{Clone: true})
	must(t, err)
	must(t, unsigned.CheckSigning(t.Context()))
}
