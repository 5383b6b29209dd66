package spec

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Words that mean something else to everybody, by what to write instead.
var vagueWords = []struct {
	words  *regexp.Regexp
	action bool // they are vague in an action too
	hint   string
}{
	{regexp.MustCompile(`\b(?:TBD|TODO|TBA|FIXME)\b|\?\?+|(?i:\bto be (?:defined|decided|determined)\b)`), true, "decide it, and write what was decided"},
	{wordsOf(`etc`, `and so on`, `and so forth`, `and the like`, `(?:and|or) similar`, `or something`, `among others`, `e\.g`, `for example`, `for instance`, `such as`),
		true, "write down all of them"},
	{wordsOf(`if (?:possible|needed|necessary|required|appropriate)`, `(?:as|when|where) (?:needed|necessary|appropriate|applicable)`, `ideally`, `maybe`, `perhaps`, `possibly`, `probably`, `usually`, `normally`, `typically`, `mostly`, `generally`),
		true, "say when, and write a contract for each case"},
	{regexp.MustCompile(`\b(?:should|may|might|could|SHOULD|MAY|MIGHT|COULD)\b`), false, "say what is seen, as a fact"},
	{wordsOf(`fast`, `faster`, `quick(?:ly)?`, `slow(?:ly)?`, `soon`, `prompt(?:ly)?`, `timely`, `efficient(?:ly)?`, `performant`, `responsive(?:ly)?`, `scal(?:es|able)`, `reasonabl[ey]`, `sufficient(?:ly)?`, `several`, `various`, `a few`, `a lot`, `large enough`),
		false, "give a number with its unit"},
	{wordsOf(`correct(?:ly)?`, `proper(?:ly)?`, `appropriate(?:ly)?`, `suitabl[ey]`, `adequate(?:ly)?`, `as (?:expected|usual|intended|desired)`, `works?`, `handles?`, `(?:is|are) handled`, `supports?`, `(?:is|are) supported`, `deals? with`, `takes? care`, `accordingly`),
		false, "write what comes back: status, fields, text"},
	{wordsOf(`user[- ]friendly`, `friendly`, `intuitive(?:ly)?`, `nice(?:ly)?`, `beautiful(?:ly)?`, `pretty`, `modern`, `eas(?:y|ily)`, `simpl[ey]`, `robust(?:ly)?`, `reliabl[ey]`, `seamless(?:ly)?`, `smooth(?:ly)?`, `graceful(?:ly)?`, `sensibl[ey]`, `meaningful`, `helpful`, `clear(?:ly)?`, `good`, `better`, `best`, `great`, `elegant(?:ly)?`, `secure(?:ly)?`, `safe(?:ly)?`),
		false, "write by what it can be recognised"},
}

func wordsOf(words ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(words, "|") + `)\b`)
}

// path is part of a path, an address or a flag, where a word is no word.
var path = regexp.MustCompile(`\S*[/@=]\S*|(?:^|\s)-\S+`)

// Results that say nothing but that there is one.
var saysNothing = regexp.MustCompile(`(?i)^(?:(?:an?|the|some) )?(?:(?:error|success|failure|result|response|answer|output)s?(?: message| response)?|ok|okay|yes|done|succeeds|fails|valid|invalid|it (?:works|succeeds|fails))[.!]?$`)

// vague lists the words of a contract that are, and what to do about the first.
func vague(action, result string) (words []string, hint string) {
	for _, v := range vagueWords {
		texts := []string{result}
		if v.action {
			texts = []string{action, result}
		}
		for _, text := range texts {
			for _, word := range v.words.FindAllString(path.ReplaceAllString(text, " "), -1) {
				if word = strconv.Quote(strings.ToLower(word)); !slices.Contains(words, word) {
					words = append(words, word)
					if hint == "" {
						hint = v.hint
					}
				}
			}
		}
	}
	if len(words) == 0 && saysNothing.MatchString(result) {
		return []string{strconv.Quote(result)}, "write which one: its status, its fields, its text"
	}
	return words, hint
}
