package verdict

import (
	"regexp"
	"strings"
)

// dataBlocks are the names of code blocks that hold what was sent or what came
// back. Any other name is taken for a programming language.
const dataBlocks = " text txt plain plaintext json json5 jsonc jsonl http https html xml svg yaml yml csv tsv toml ini form output response request headers body "

// program decides whether a code block in an entry holds a program: by the name
// of its language, unless it is a command that does nothing but send a request.
func program(info string, lines []string) bool {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(info)), " ")
	switch name = strings.Trim(name, "{}."); name {
	case "":
		return false
	case "sh", "bash", "shell", "zsh", "console", "curl":
		return !requests(lines)
	}
	return !strings.Contains(dataBlocks, " "+name+" ")
}

var curl = regexp.MustCompile(`^(?:\$ +)?curl(?: |$)`)

// requests reports lines that are nothing but calls of curl.
func requests(lines []string) bool {
	goesOn := false
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line != "" && !goesOn && !curl.MatchString(line) || strings.Contains(line, "$(") {
			return false
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return true
}
