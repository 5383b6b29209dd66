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
	commandWord   = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
	// A subcommand: tests use it literally.
	givenWord = regexp.MustCompile(`^[a-z][a-z-]*$`)
	// An option without a placeholder.
	givenOption = regexp.MustCompile(`^--?[A-Za-z][\w-]*(?:=[^A-Z<{\[…]+)?$`)
	// A number or a quoted argument. It is literal if the result names the output for it.
	givenValue = regexp.MustCompile(`^(?:-?\d+(?:\.\d+)?|"[^"<{…]*"|'[^'<{…]*')$`)
	bareRun    = regexp.MustCompile(`\b(?:without (?:any )?|with no |no )arguments?\b`)
	exitCode   = regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: with)?(?: an?| the)?(?: exit)?(?: code| status)?(?: is| of|:)? (\d{1,3})\b`)
	// An exit code other than 0.
	failing = regexp.MustCompile(`(?i)\b(?:exit\w* (?:\w+ )*)?non-?zero\b|\bexit code other than 0`)
	// Words that announce output, or the content of a file that is named like an argument.
	leaves = regexp.MustCompile("^[\"“`]|(?i:\\b(?:prints?|printed|outputs?|stdout|stderr|standard (?:output|error))\\b)|" +
		`\b(?:in|into|to) [A-Z]{2,}\b|\b[A-Z]{2,} (?:holds?|has|contains?)\b`)
	codeNumber = regexp.MustCompile("`(\\d+)`")
)

// argumentNouns are words for arguments that look like subcommands.
var argumentNouns = strings.Fields("file filename path dir directory name text string number value key id url")

// ReadRun reads a contract of a program: the literal words of its command, the exit code, and what
// the result names of the output and the files. It returns false if the result names nothing, or
// only under a condition.
func ReadRun(action, result string) (c Claim, ok bool) {
	c.program, c.text = true, [4]string{helper.KindCommand, "", action, result}
	c.command = commandWord.FindAllString(aroundCommand.ReplaceAllString(commandOf(action), ""), -1)
	c.bare = bareRun.MatchString(action)
	result = codeNumber.ReplaceAllString(result, "$1")
	plain := blankQuotes(result)
	if m := laterAnswer.FindStringIndex(plain); m != nil {
		plain, result = plain[:m[0]], result[:m[0]]
	}
	for _, m := range exitCode.FindAllStringSubmatch(plain, -1) {
		code, _ := strconv.Atoi(m[1])
		c.statuses = append(c.statuses, span{code, code})
	}
	if len(c.statuses) == 0 && failing.MatchString(plain) {
		c.statuses = []span{{1, 255}}
	}
	c.leaves = leaves.MatchString(result)
	c.readOutput(action, result)
	for i, word := range c.command {
		switch literal := len(c.printed) > 0 || c.json != nil; {
		case i == 0:
		case givenOption.MatchString(word), givenWord.MatchString(word) && !isOpen(word) && !slices.Contains(argumentNouns, word),
			literal && givenValue.MatchString(word):
			c.words = append(c.words, strings.Trim(word, `"'`))
		}
	}
	return c, (len(c.statuses) > 0 || c.leaves) && !conditional.MatchString(plain)
}

// commandOf returns the command of an action: the last one in code that is not said to have run
// before.
func commandOf(action string) (command string) {
	for _, at := range inlineCode.FindAllStringIndex(action, -1) {
		code := strings.Trim(action[at[0]:at[1]], "`")
		program, _, _ := strings.Cut(code, " ")
		first, _, _ := strings.Cut(command, " ")
		if (command == "" || program == first) && !earlier.MatchString(action[:at[0]]) {
			command = code
		}
	}
	return command
}

// Loose returns the claim without the words of its command after the first one, except options and
// values: they may stand for arguments.
func (c Claim) Loose() *Claim {
	for i := len(c.words) - 1; i > 0; i-- {
		if givenWord.MatchString(c.words[i]) {
			c.words = slices.Delete(slices.Clone(c.words), i, i+1)
		}
	}
	return &c
}

// run returns the result of a run. It returns false if x is not a run or was too large to keep.
func (x Exchange) run() (ran helper.AppRan, ok bool) {
	ok = x.Target == RunTarget && json.Unmarshal(x.Got.Begins, &ran) == nil
	return ran, ok && ran.Error == ""
}

// askedRun reports whether x is a run whose arguments contain the words of the contract in their
// order, and its options.
func (c Claim) askedRun(x Exchange) bool {
	ran, ok := x.run()
	args := ran.Args
	for _, word := range c.words {
		is := func(arg []byte) bool { return string(arg) == word }
		if givenOption.MatchString(word) {
			ok = ok && slices.ContainsFunc(ran.Args, is)
			continue
		}
		i := slices.IndexFunc(args, is)
		if i < 0 {
			return false
		}
		args = args[i+1:]
	}
	return ok && (!c.bare || len(ran.Args) == len(c.words))
}

// Unkept reports whether x may be a run that was too large to keep.
func (x Exchange) Unkept() bool {
	return x.Target == RunTarget && x.Got.Bytes > int64(len(x.Got.Begins))
}

// missesRun describes how a run differs from the contract, "" if it does not.
func (c Claim) missesRun(x Exchange) string {
	ran, _ := x.run()
	if !c.allows(ran.Exit) {
		return fmt.Sprintf("exit code %d", ran.Exit)
	}
	return c.missesOutput(ran)
}

// alteredRun returns the result of a run with another exit code, with other output, or with both. It
// removes output and files. If the run has no output, it adds a line.
func (x Exchange) alteredRun(what []Alteration) []byte {
	ran, _ := x.run()
	if slices.Contains(what, OfStatus) {
		ran.Exit = 1 - min(ran.Exit, 1)
	}
	if slices.Contains(what, OfNamed) {
		var altered []byte
		if len(bytes.TrimSpace(ran.Stdout)) == 0 {
			altered = []byte("altered\n")
		}
		ran.Stdout, ran.Stderr, ran.Files = altered, nil, nil
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
