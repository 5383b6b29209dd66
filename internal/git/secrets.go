package git

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"abl/internal/redact"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// ErrSecret marks a tree that was not committed for a secret that it holds.
var ErrSecret = errors.New("a secret would be committed")

// maxSecretFiles is how many files are named that hold a secret.
const maxSecretFiles = 10

// refuseSecrets names the files, new or changed, that hold a secret, in their names
// or in what stands in them. The value is never told.
func (s *spool) refuseSecrets(secrets map[string]string, base, entries []*index.Entry) error {
	any, _ := redact.New(slices.Collect(maps.Values(secrets))...)
	if !any.Knows() {
		return nil
	}
	in := func(text []byte) string {
		if any.Holds(text) {
			for _, name := range slices.Sorted(maps.Keys(secrets)) {
				if one, _ := redact.New(secrets[name]); one.Holds(text) {
					return name
				}
			}
		}
		return ""
	}
	var all []string
	for _, path := range differing(base, entries) {
		e := entryAt(entries, path)
		if e == nil || len(all) == maxSecretFiles {
			continue
		}
		name := in([]byte(path))
		if name != "" {
			path = any.String(path)
		} else if o, is := s.all[e.Hash]; is {
			var err error
			if name, err = search(o.data, in); err != nil {
				return fmt.Errorf("cannot look for secrets in %q: %w", path, err)
			}
		}
		if name != "" {
			all = append(all, fmt.Sprintf("%q has the value of %s", path, name))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w, plain or encoded: %s", ErrSecret, strings.Join(all, ", "))
}

// search looks at a part of the data at a time; parts overlap by more than any
// secret takes.
func search(data *io.SectionReader, in func([]byte) string) (name string, err error) {
	const part, overlap = 1 << 20, 64 << 10
	held := make([]byte, min(part, data.Size()))
	for at := int64(0); name == "" && at < data.Size(); at += part - overlap {
		n, err := data.ReadAt(held, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		name = in(held[:n])
	}
	return name, nil
}
