package codecommit

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"abl/internal/hostfs"
	"abl/internal/redact"
)

// Collect writes files of a folder as one text for a model, but for those that hold
// secrets, are not text, are too large, or were written by a program. left says which,
// and why.
func Collect(root string, names []string, secrets *redact.Redactor) (text string, left []string, err error) {
	const most = 1 << 20
	var b strings.Builder
	for _, name := range names {
		why := unwanted(path.Base(name))
		var data []byte
		if why == "" {
			data, err = hostfs.Read(root, name, most)
			switch {
			case errors.Is(err, hostfs.ErrTooLarge):
				why = fmt.Sprintf("larger than %d KiB", most>>10)
			case errors.Is(err, hostfs.ErrAbsent), errors.Is(err, hostfs.ErrChanged):
				why = "it changed meanwhile"
			case errors.Is(err, hostfs.ErrNotRegular):
				why = "a link, or no file"
			case err != nil:
				return "", nil, err
			case bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data):
				why = "not text"
			case bytes.Contains(data, []byte("PRIVATE KEY-----")), secrets.Holds(data):
				why = "it holds a secret"
			}
		}
		if why != "" {
			left = append(left, name+": "+why)
			continue
		}
		b.WriteString("--- FILE " + name + " ---\n" + line(string(data)))
	}
	return b.String(), left, nil
}

// unwanted says why a file is not even opened.
func unwanted(name string) string {
	folded := strings.ToLower(name)
	for why, patterns := range map[string]string{
		"its name says that it holds secrets": ".env* *.pem *.key *.p12 *.pfx *.keystore *.jks id_rsa* id_ed25519* id_ecdsa* *-key.txt .npmrc .netrc .pypirc credentials* secrets.*",
		"written by a program":                "go.sum *.lock package-lock.json npm-shrinkwrap.json pnpm-lock.yaml packages.lock.json gradle.lockfile",
	} {
		for pattern := range strings.FieldsSeq(patterns) {
			if ok, _ := path.Match(pattern, folded); ok {
				return why
			}
		}
	}
	return ""
}
