package git

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// A file with a secret is not committed. A file that was committed before is not checked again.
func TestSecrets(t *testing.T) {
	const secret = "hunter2-hunter2-hunter2"
	for name, files := range map[string]map[string]string{
		"plain":           {"a": "key = " + secret + "\n"},
		"encoded":         {"a": base64.StdEncoding.EncodeToString([]byte(secret))},
		"a link":          {"a": "->" + secret},
		"a name":          {"keys/" + secret: "x"},
		"between parts":   {"a": strings.Repeat("x", 1<<20-10) + secret + strings.Repeat("y", 1<<20)},
		"the second part": {"a": strings.Repeat("x", 5<<20) + secret},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := Open(dir, Options{Secrets: map[string]string{"TOKEN": secret, "OTHER": "quite-another-one", "SHORT": "x"}})
			must(t, err)
			snapshot(t, r, "s", "0")
			write(t, dir, files)
			_, err = r.Snapshot(t.Context(), message("s", "1"))
			if !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), "TOKEN") || strings.Contains(err.Error(), secret) {
				t.Errorf("Snapshot: got %v, want ErrSecret that names TOKEN without its value", err)
			}
			snapshot(t, open(t, dir), "allowed", "2")
			if s, err := r.Snapshot(t.Context(), message("s", "3")); err != nil || s.Changed != 0 {
				t.Errorf("Snapshot of a committed secret: got %d changed paths, %v, want none", s.Changed, err)
			}
			sound(t, dir)
		})
	}
}

// A file that cannot be searched is an error.
func TestSecretsUnsearched(t *testing.T) {
	s := spoolIn(t, open(t, t.TempDir()))
	name := plumbing.NewHash(put(t, s, 1, 100)[0])
	must(t, s.file.Close())
	if s.refuseSecrets(map[string]string{"TOKEN": "hunter2-hunter2-hunter2"}, nil, []*index.Entry{{Name: "a", Hash: name}}) == nil {
		t.Error("search of a file that cannot be read: got no error, want one")
	}
}
