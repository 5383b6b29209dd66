package witness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/helper"
	"abl/internal/wording"
)

// RunTarget is the path at the broker for a run of an app that is a program.
const RunTarget = "/app"

var (
	inlineCode    = regexp.MustCompile("`[^`]+`")
	aroundCommand = regexp.MustCompile(`^.*\| |\s[<>].*`)
	// A subcommand or an option: tests use it literally.
	givenWord = regexp.MustCompile(`^(?:--?)?[a-z][a-z-]*$`)
	exitCode  = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: with)?(?: an?| the)?(?: exit)?(?: code| status)?(?: is| of|:)? (\d{1,3})\b`)
	// Words that announce output, or the content of a file that is named like an argument.
	leaves = regexp.MustCompile("^[\"“`]|(?i:\\b(?:prints?|printed|outputs?|stdout|stderr|standard (?:output|error))\\b)|" +
		`\b(?:in|into|to) [A-Z]{2,}\b|\b[A-Z]{2,} (?:holds?|has|contains?)\b`)
)

// ReadRun reads a contract of a program: the literal words of its command, the exit code, and
// whether the result names output or the content of a file. It returns false if the result names
// neither, or only under a condition.
func ReadRun(action, result string) (c Claim, ok bool) {
	c.program, c.text = true, [4]string{helper.KindCommand, "", action, result}
	command := aroundCommand.ReplaceAllString(strings.Trim(inlineCode.FindString(action), "`"), "")
	for i, word := range strings.Fields(command) {
		if i > 0 && givenWord.MatchString(word) && !isOpen(word) {
			c.words = append(c.words, word)
		}
	}
	plain := blankQuotes(result)
	if m := laterAnswer.FindStringIndex(plain); m != nil {
		plain, result = plain[:m[0]], result[:m[0]]
	}
	for _, m := range exitCode.FindAllStringSubmatch(plain, -1) {
		code, _ := strconv.Atoi(m[1])
		c.statuses = append(c.statuses, span{code, code})
	}
	c.leaves = leaves.MatchString(result)
	return c, (len(c.statuses) > 0 || c.leaves) && !conditional.MatchString(plain)
}

// AnyRun returns the claim without the words of its command, so that it fits every run.
func (c Claim) AnyRun() *Claim {
	c.text[2], c.words = "", nil
	return &c
}

// run returns the result of a run. It returns false if x is not a run or was too large to keep.
func (x Exchange) run() (ran helper.AppRan, ok bool) {
	ok = x.Target == RunTarget && json.Unmarshal(x.Got.Begins, &ran) == nil
	return ran, ok && ran.Error == ""
}

// askedRun reports whether x is a run whose arguments contain the words of the contract in their
// order.
func (c Claim) askedRun(x Exchange) bool {
	ran, ok := x.run()
	for _, word := range c.words {
		i := slices.IndexFunc(ran.Args, func(arg []byte) bool { return string(arg) == word })
		if i < 0 {
			return false
		}
		ran.Args = ran.Args[i+1:]
	}
	return ok
}

// GivesWords reports whether the contract names arguments that distinguish its runs.
func (c Claim) GivesWords() bool { return len(c.words) > 0 }

// missesRun returns the exit code of a run if the contract names another, else "".
func (c Claim) missesRun(x Exchange) string {
	if ran, _ := x.run(); !c.allows(ran.Exit) {
		return fmt.Sprint(ran.Exit)
	}
	return ""
}

// alteredRun returns the result of a run with another exit code, with other output, or with both. It
// removes output and files. If the run has no output, it adds a line.
func (x Exchange) alteredRun(what []Alteration) []byte {
	ran, _ := x.run()
	if slices.Contains(what, OfStatus) {
		ran.Exit = 1 - min(ran.Exit, 1)
	}
	if slices.Contains(what, OfNamed) {
		blank := len(bytes.TrimSpace(ran.Stdout)) == 0
		if ran.Stdout, ran.Stderr, ran.Files = nil, nil, nil; blank {
			ran.Stdout = []byte("altered\n")
		}
	}
	data, _ := json.Marshal(ran) // run decoded it from JSON
	return data
}

// describeAlteredRun describes the altered run.
func (x Exchange) describeAlteredRun(what Alteration) string {
	ran, _ := x.run()
	args := wording.Cut(arguments(ran), 100)
	if what == OfStatus {
		return fmt.Sprintf("the exit code of its run with %s is %d instead of %d", args, 1-min(ran.Exit, 1), ran.Exit)
	}
	return "the output and files of its run with " + args + " change"
}
