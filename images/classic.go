package images

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// needsBuildKit lists the parts of a Dockerfile that the classic builder refuses or silently
// ignores.
var needsBuildKit = []struct {
	instructions []string
	option       bool // the word is an option: only options are before it
	pattern      *regexp.Regexp
}{
	{[]string{"RUN"}, true, regexp.MustCompile(`^--(mount|network|security)\b`)},
	{[]string{"COPY", "ADD"}, true, regexp.MustCompile(`^--(chmod|link|parents|exclude|checksum|keep-git-dir)\b`)},
	{[]string{"RUN", "COPY", "ADD"}, false, regexp.MustCompile(`^<<-?["']?[A-Za-z_]\w*["']?$`)},
	{[]string{"ARG"}, false, regexp.MustCompile(`^(TARGET|BUILD)(PLATFORM|OS|ARCH|VARIANT)$`)},
}

// checkClassic returns an error that names the first line that the classic builder cannot build.
func checkClassic(text string) error {
	number, instruction, options := 0, "", true
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		if instruction == "" {
			instruction, options = strings.ToUpper(words[0]), true
			words = words[1:]
		}
		for _, word := range words {
			options = options && (strings.HasPrefix(word, "--") || word == `\`)
			if classicLacks(instruction, word, options) {
				return fmt.Errorf("line %d: %s %s needs BuildKit, and the engine has only the classic builder: "+
					"allow BuildKit (unset DOCKER_BUILDKIT; \"features\" in the engine's daemon.json) or update Docker",
					number, instruction, word)
			}
		}
		if !strings.HasSuffix(strings.TrimSpace(line), `\`) {
			instruction = ""
		}
	}
	return nil
}

// classicLacks reports whether the classic builder does not support a word of an instruction.
// option is set if the word is an option.
func classicLacks(instruction, word string, option bool) bool {
	for _, n := range needsBuildKit {
		if n.pattern.MatchString(word) && slices.Contains(n.instructions, instruction) && (option || !n.option) {
			return true
		}
	}
	return false
}

// imagesOf returns the images that a Dockerfile names, except in variables.
func imagesOf(text string) (refs []string) {
	for _, words := range instructions(text) {
		for _, word := range words[1:] {
			from, is := strings.CutPrefix(word, "--from=")
			if words[0] == "FROM" && !strings.HasPrefix(word, "--") {
				from, is = word, true
			}
			if is && !strings.Contains(from, "$") {
				refs = append(refs, from)
			}
			if is {
				break // AS NAME follows
			}
		}
	}
	return refs
}
