package prompts

import (
	"crypto/sha256"
	"encoding/hex"
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
// or changed it, abl's own otherwise. own tells which.
func Choose(role string, file []byte) (template string, own bool, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(file), "\ufeff"), "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		if file != nil {
			return "", false, fmt.Errorf("cannot use prompts/%s.md: it is empty; delete it to use abl's own", role)
		}
		return Default(role), false, nil
	}
	note, body, ok := strings.Cut(text, noteEnd)
	if !ok || !strings.HasPrefix(note, noteStart) {
		return text, true, nil
	}
	if strings.TrimPrefix(note, noteStart) == sum(body) {
		return Default(role), false, nil
	}
	return body, true, nil
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}
