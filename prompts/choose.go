package prompts

import (
	"crypto/sha256"
	"fmt"
	"strings"
)

// The comment above a copy of a default prompt. If its sum matches the text below it, the user
// has not changed the copy.
const (
	noteStart = "<!-- This is abl's own prompt. Change anything below and abl uses your version; " +
		"until then it uses its own, which may be newer. sha256:"
	noteEnd = " -->\n"
)

// Default returns abl's own prompt of a role, builder or verifier, and "" for any other name.
func Default(role string) string {
	return map[string]string{"builder": Builder, "verifier": Verifier}[role]
}

// Copy returns the content of the prompt file that `abl init` writes for a role.
func Copy(role string) []byte {
	body := Default(role)
	return []byte(noteStart + sum(body) + noteEnd + body)
}

// Choose returns the prompt of a role. file is the content of the role's file in the project's
// prompts directory, nil if it does not exist. Choose returns the file's text if the user wrote or
// changed it, and abl's own prompt otherwise. It fails if the file is empty.
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
