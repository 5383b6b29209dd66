package images

import (
	"errors"
	"fmt"
	"strings"
)

// ErrDockerfile says that a project's own Dockerfile or its folder cannot be used.
var ErrDockerfile = errors.New("the project's Dockerfile cannot be used")

const (
	dockerfileName = "Dockerfile" // what the engine reads in every context of abl's
	maxDockerfile  = 1 << 20      // bytes
)

// checkDockerfile wants a Dockerfile that extends abl's image: it begins with
// ARG ABL_IMAGE and FROM ${ABL_IMAGE}, and its last stage stands on that image,
// straight or through earlier stages.
func checkDockerfile(text string) error {
	own := map[string]bool{"$ABL_IMAGE": true, "${ABL_IMAGE}": true}
	n, stands := 0, false
	for _, in := range instructions(text) {
		n++
		switch {
		case n == 1 && !(in.word == "ARG" && len(in.args) == 1 && in.args[0] == "ABL_IMAGE"):
			return fmt.Errorf("line %d: want \"ARG ABL_IMAGE\" as the first instruction", in.line)
		case n == 2 && !(in.word == "FROM" && len(in.args) > 0 && own[in.args[0]]):
			return fmt.Errorf("line %d: want \"FROM ${ABL_IMAGE}\" as the second instruction", in.line)
		case in.word == "FROM":
			stands = len(in.args) > 0 && (own[in.args[0]] || own[strings.ToLower(in.args[0])])
			if len(in.args) == 3 && strings.EqualFold(in.args[1], "AS") {
				own[strings.ToLower(in.args[2])] = stands
			}
		}
	}
	switch {
	case strings.HasSuffix(strings.TrimSpace(text), `\`):
		return errors.New("its last line is continued by nothing")
	case n < 2:
		return errors.New("line 1: want \"ARG ABL_IMAGE\" and \"FROM ${ABL_IMAGE}\"")
	case !stands:
		return errors.New("its last stage does not stand on ${ABL_IMAGE}, so that the agent would be missing")
	}
	return nil
}

// instruction is one of a Dockerfile, continued lines joined.
type instruction struct {
	line int // where it begins, from 1
	word string
	args []string
}

func instructions(text string) []instruction {
	var all []instruction
	var words []string
	begun := 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if begun == 0 {
			begun = i + 1
		}
		part, more := strings.CutSuffix(line, `\`)
		words = append(words, strings.Fields(part)...)
		if more {
			continue
		}
		all = appendInstruction(all, begun, words)
		words, begun = nil, 0
	}
	return appendInstruction(all, begun, words)
}

func appendInstruction(all []instruction, line int, words []string) []instruction {
	if len(words) == 0 {
		return all
	}
	return append(all, instruction{line: line, word: strings.ToUpper(words[0]), args: words[1:]})
}
