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

// RunTarget is what is asked of the broker for a run of an app that is a program.
const RunTarget = "/app"

var (
	inlineCode    = regexp.MustCompile("`[^`]+`")
	aroundCommand = regexp.MustCompile(`^.*\| |\s[<>].*`)
	// A sub-command or an option, which a test gives as the contract has it.
	givenWord = regexp.MustCompile(`^(?:--?)?[a-z][a-z-]*$`)
	exitCode  = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: with)?(?: an?| the)?(?: exit)?(?: code| status)?(?: is| of|:)? (\d{1,3})\b`)
	// What says that a program prints, or of a file in the place of an argument what is in it.
	leaves = regexp.MustCompile("^[\"“`]|(?i:\\b(?:prints?|printed|outputs?|stdout|stderr|standard (?:output|error))\\b)|" +
		`\b(?:in|into|to) [A-Z]{2,}\b|\b[A-Z]{2,} (?:holds?|has|contains?)\b`)
)

// ReadRun reads a contract of a program: the words of its command that each test gives, and of its
// result the exit code and whether it says what is printed or stands in a file. It is false
// where neither is named, or only under a condition.
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

// AnyRun is the claim held against every run, for tests that give none of its words.
func (c Claim) AnyRun() *Claim {
	c.text[2], c.words = "", nil
	return &c
}

// run is what came of a run, false where it was none, or was too much to keep.
func (x Exchange) run() (ran helper.AppRan, ok bool) {
	ok = x.Target == RunTarget && json.Unmarshal(x.Got.Begins, &ran) == nil
	return ran, ok && ran.Error == ""
}

// askedRun says whether a run was given the words of the contract, in their order.
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

// GivesWords says that the contract names words that tell its runs from others.
func (c Claim) GivesWords() bool { return len(c.words) > 0 }

// missesRun gives the exit code of a run where the contract names another.
func (c Claim) missesRun(x Exchange) string {
	if ran, _ := x.run(); !c.says(ran.Exit) {
		return fmt.Sprint(ran.Exit)
	}
	return ""
}

// alteredRun is what came of a run with another exit code; or with another output: none where
// there was one, a line where there was none, and no files.
func (x Exchange) alteredRun(what Alteration) []byte {
	ran, _ := x.run()
	switch blank := len(bytes.TrimSpace(ran.Stdout)) == 0; {
	case what == OfStatus:
		ran.Exit = 1 - min(ran.Exit, 1)
	case blank:
		ran.Stdout, ran.Stderr, ran.Files = []byte("altered\n"), nil, nil
	default:
		ran.Stdout, ran.Stderr, ran.Files = nil, nil, nil
	}
	data, _ := json.Marshal(ran) // it was read of such
	return data
}

// tellRun tells what became of a run.
func (x Exchange) tellRun(what Alteration) string {
	ran, _ := x.run()
	args := wording.Cut(arguments(ran), 100)
	if what == OfStatus {
		return fmt.Sprintf("the exit code of its run with %s is %d instead of %d", args, 1-min(ran.Exit, 1), ran.Exit)
	}
	return "what its run with " + args + " prints and leaves in files is another"
}
