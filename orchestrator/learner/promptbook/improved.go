package promptbook

import (
	"strings"

	"abl/orchestrator/learner/answer"
)

// Improved is the prompt in a model's answer. Asked for nothing but the prompt,
// models put it in a fence or a sentence before it all the same; what is not
// certainly such a frame stays. It is empty when there is none.
func Improved(text string) string {
	lines := answer.Lines(text)
	lines = strings.Split(trim(lines), "\n")
	if begins, inner, ends := fenced(lines); inner != nil && ends == len(lines)-1 && (begins == 0 || announced(lines[:begins])) {
		return trim(inner)
	}
	if len(lines) > 1 && announced(lines[:1]) {
		lines = lines[1:]
	}
	if len(lines) > 0 && title(lines[0]) {
		lines = lines[1:]
	}
	if text := trim(lines); strings.TrimSpace(text) != "" && !answer.Placeholder(text) {
		return text
	}
	return ""
}

// fenced is the first fenced block whose end closes it, and where it stands.
func fenced(lines []string) (begins int, inner []string, ends int) {
	for i, line := range lines {
		mark := fence(line)
		if mark == "" {
			continue
		}
		for k := len(lines) - 1; k > i; k-- { // the last one: a prompt may hold fences of its own
			if strings.TrimSpace(lines[k]) == mark {
				return i, lines[i+1 : k], k
			}
		}
		return 0, nil, 0
	}
	return 0, nil, 0
}

// fence is the run of marks with which a line opens a block, "" for none.
func fence(line string) string {
	for _, mark := range []string{"`", "~"} {
		if run := line[:len(line)-len(strings.TrimLeft(line, mark))]; len(run) >= 3 {
			return run
		}
	}
	return ""
}

// announced says that lines only say that the prompt follows.
func announced(lines []string) bool {
	text := strings.ToLower(trim(lines))
	return !strings.Contains(text, "\n") && len(text) < 160 && strings.HasSuffix(text, ":") && strings.Contains(text, "prompt") &&
		(strings.HasPrefix(text, "here") || strings.HasPrefix(text, "sure") || strings.HasPrefix(text, "the improved") || strings.HasPrefix(text, "improved"))
}

// title says that a line is the file's own heading, or one like it.
func title(line string) bool {
	switch strings.ToLower(strings.Trim(line, "#*: \t")) {
	case "current prompt", "improved prompt", "new prompt":
		return true
	}
	return false
}
