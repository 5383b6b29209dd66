package prompts

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// The comment above a copy of a default prompt. While the sum is that of what
// follows, nobody has changed the copy.
const (
	noteStart = "<!-- This is abl's own prompt. Change anything below and abl uses your version; until then it uses its own, which may be newer. sha256:"
	noteEnd   = " -->\n"
)

// Default is abl's own prompt of a role, builder or verifier; "" for any other name.
func Default(role string) string {
	return map[string]string{"builder": Builder, "verifier": Verifier}[role]
}

// Copy is the file that `abl init` writes for a role.
func Copy(role string) []byte {
	body := Default(role)
	return []byte(noteStart + sum(body) + noteEnd + body)
}

// Choose returns the prompt of a role that has the given file in the project's
// prompts directory, nil when it has none: the file's text when a person wrote
// or changed it, abl's own otherwise.
func Choose(role string, file []byte) (template string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(file), "\ufeff"), "\r\n", "\n")
	note, body, ended := strings.Cut(text, noteEnd)
	of, noted := strings.CutPrefix(note, noteStart)
	switch {
	case file == nil, ended && noted && of == sum(body):
		return Default(role), nil
	case strings.TrimSpace(text) == "":
		return "", fmt.Errorf("cannot use prompts/%s.md: it is empty; delete it to use abl's own", role)
	case ended && noted:
		return body, nil
	}
	return text, nil
}

func sum(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
