package learner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"abl/internal/wording"
)

// line is one line of a model's answer. Models decorate labelled lines with bullets, numbers,
// headings, bold type and fences, even if they are asked for plain lines.
type line struct {
	label    string // at its beginning, in upper case; "" without one
	text     string // what follows the label, or the whole line without its bullet
	bullet   bool   // it is an item of a list
	indented bool
	blank    bool // it is empty, a rule or a fence
}

// dress matches the marks of a quotation, a heading or a list item.
var dress = regexp.MustCompile(`^(?:[\s\p{Z}]|>|#+(?: |$)|(?:[-+*•‣◦–]|\d{1,3}[.)])(?:\s|$))*`)

// labels matches a line that begins with one of some names: emphasis, the name, and a colon, a dash
// or the line's end. A number or a remark in brackets may follow the name.
func labels(names ...string) *regexp.Regexp {
	const between = "[ \\d_*`#./-]*"
	name := strings.ReplaceAll(strings.Join(names, "|"), "_", between)
	return regexp.MustCompile("^([*_`]*)" + between + "((?i:" + name + "))(?:" +
		between + `(?:\([^:：]*)?[:：]|` + between + `?(?:\(.*?)? [-–—] |(` + between + `(?:\(.*)?\n))`)
}

// longest is the largest offset of a label's end in a line, in bytes.
const longest = 64

// readLine parses a line. Text before a colon that is not one of the labels is text.
func readLine(raw string, labels *regexp.Regexp) line {
	s := strings.TrimSpace(raw)
	marks := dress.FindString(s)
	l := line{indented: raw != strings.TrimLeft(raw, " \t"), bullet: strings.Trim(marks, "># \t\u00a0") != ""}
	l.blank = strings.Trim(s, "-_*= ") == "" || strings.HasPrefix(s, "```") || strings.HasPrefix(s, "~~~")
	l.text = strings.TrimSpace(s[len(marks):])
	at := labels.FindStringSubmatchIndex((l.text + "\n")[:min(len(l.text)+1, longest)])
	if l.blank || at == nil || at[6] >= 0 && at[3] == 0 && !strings.Contains(marks, "#") {
		return l // a label without text must look like a title
	}
	rest, emphasis := l.text[min(at[1], len(l.text)):], l.text[:at[3]]
	l.label, l.text = strings.ToUpper(l.text[at[4]:at[5]]), unwrap(rest, emphasis)
	return l
}

// unwrap removes the closing part of the label's own marks from the text after it.
func unwrap(rest, mark string) string {
	rest = strings.TrimPrefix(strings.TrimSpace(rest), mark)
	if strings.Count(rest, mark)%2 == 1 {
		rest = strings.TrimSuffix(rest, mark)
	}
	return strings.TrimSpace(rest)
}

// wordsOf returns the words of a text in lower case, without punctuation.
func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '/' && r != '\''
	})
}

// isPlaceholder reports whether a text only repeats the requested form, such as <insight>.
func isPlaceholder(text string) bool {
	return strings.HasPrefix(text, "<") && strings.HasSuffix(text, ">") && !strings.Contains(text[1:], "<")
}

// categories are the aspects of a review, in the order in which they are shown.
var categories = []string{"ARCHITECTURE", "DESIGN", "CODE_QUALITY", "SECURITY", "TESTS"}

// The states of a category. A category without an answer never counts as good.
const (
	RatedOK = "ok"
	Issues  = "issues"
	Unrated = "unknown" // there was no answer, or an empty one
)

// Finding is the review of one category.
type Finding struct {
	Category string `json:"category"`
	State    string `json:"state"`
	Text     string `json:"text,omitempty"`
}

// CodeReview is a review. It always has five findings.
type CodeReview struct {
	Findings []Finding `json:"findings"`
}

// maxFinding is the largest length of a finding, in characters.
const maxFinding = 1200

// closing matches the beginning of a summary after a blank line.
var closing = regexp.MustCompile(`(?i)^(in )?(overall|summary|conclusion|altogether)\b`)

// ParseReview parses the answer of a reviewer. It accepts any text.
func ParseReview(text string) (r CodeReview) {
	said := map[string][]string{}
	known := labels(categories...)
	at, gap := "", false
	for raw := range strings.SplitSeq(wording.Unix(text), "\n") {
		l := readLine(raw, known)
		switch {
		case l.label != "": // each category has its own first letter
			at = categories[slices.IndexFunc(categories, func(c string) bool { return c[0] == l.label[0] })]
			said[at] = append(said[at], l.text)
		case l.blank || at == "":
		case gap && closing.MatchString(l.text): // a summary belongs to no category
			at = ""
		case l.bullet || said[at][len(said[at])-1] == "" || len(said[at][len(said[at])-1]) > maxFinding: // limits quadratic copying
			said[at] = append(said[at], l.text)
		default: // a sentence continues
			said[at][len(said[at])-1] += "\n" + l.text
		}
		gap = l.blank
	}
	for _, c := range categories {
		r.Findings = append(r.Findings, findingOf(c, said[c]))
	}
	return r
}

// findingOf returns the finding of a category from the lines about it.
func findingOf(c string, said []string) Finding {
	said = slices.DeleteFunc(said, func(s string) bool { return s == "" || isPlaceholder(s) })
	f := Finding{Category: c, State: RatedOK, Text: wording.Cut(strings.ReplaceAll(strings.Join(said, " "), "\n", " "), maxFinding)}
	if len(said) == 0 {
		f.State = Unrated
	} else if slices.ContainsFunc(said, func(s string) bool { return !fine(c, s) }) {
		f.State = Issues
	}
	return f
}

// Words with which a reviewer says that there are no findings, and words that revoke it.
var (
	good     = strings.Fields("ok okay good fine great solid sound clean excellent adequate acceptable satisfactory lgtm")
	applause = []string{"well done", "nice job", "nice work"}
	before   = strings.Fields("the this code program looks look seems all is very pretty everything")
	nothing  = strings.Fields("no none n/a nothing issue issues problem problems concern concerns vulnerability vulnerabilities finding findings were was are is found " +
		"identified detected seen noted to report here any all at")
	but = strings.Fields("but however except although though yet still missing lacks lacking should could consider needs need would only partly partially unless apart " +
		"unsafe insecure vulnerable bad poor fails failing broken wrong never can't cannot not no none without")
)

// fine reports whether a text has no finding: it is praise without a restriction, or says that there
// is nothing to report. For tests "none" is a finding.
func fine(c string, text string) bool {
	words := wordsOf(text)
	switch {
	case praises(words):
		return true
	case c == "TESTS" && (len(words) == 1 || words[0] == "none"):
		return false
	}
	end := strings.IndexAny(text+".", ".!;\n")
	return only(nothing, wordsOf(text[:end])) && praises(wordsOf(text[end:]))
}

// praises reports whether words are empty or praise without a restriction.
func praises(words []string) bool {
	if len(words) == 0 || slices.Contains(applause, strings.Join(words, " ")) {
		return true
	}
	for len(words) > 1 && slices.Contains(before, words[0]) {
		words = words[1:]
	}
	return slices.Contains(good, words[0]) && !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(but, w) })
}

// only reports whether all words are in a list.
func only(of, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
}

// Summary returns the review for the user and for later prompts, one line per category.
func (r CodeReview) Summary() string {
	var b strings.Builder
	for _, f := range r.Findings {
		text := map[string]string{RatedOK: "OK", Unrated: "no answer", Issues: "issues: " + f.Text}[f.State]
		fmt.Fprintf(&b, "%s: %s\n", f.Category, text)
	}
	return b.String()
}

const (
	// The labels of lessons in answers.
	LabelLearning = "LEARNING"
	LabelMistake  = "MISTAKE"

	// Limits of an answer, and of memory.txt and mistakes.txt, which every prompt contains.
	maxItem  = 400 // runes of a lesson
	maxItems = 20  // lessons of one answer
	maxLines = 200
	maxBytes = 48 << 10
)

// Dropped is a lesson that was dropped, and why.
type Dropped struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Lessons are the lessons of an answer.
type Lessons struct {
	Items   []string  `json:"items"`
	Dropped []Dropped `json:"dropped,omitempty"`
}

// Summary returns one line per lesson.
func (l Lessons) Summary() string {
	var b strings.Builder
	for _, item := range l.Items {
		b.WriteString("- " + item + "\n")
	}
	for _, d := range l.Dropped {
		b.WriteString("dropped: " + d.Text + " (" + d.Why + ")\n")
	}
	return b.String()
}

// ParseLessons parses an answer. It returns the labelled lines or, without any, the items of lists,
// because a model may forget the label.
func ParseLessons(label, text string) Lessons {
	found := Lessons{Items: []string{}}
	for _, s := range lessonsIn(label, text) {
		s = wording.Cut(wording.OneLine(s), maxItem)
		why := ""
		switch {
		case s == "":
			continue
		case isEmpty(label, s):
			why = "generic"
		case len(found.Items) == maxItems:
			why = "too many in one answer"
		default:
			found.Items = append(found.Items, s)
			continue
		}
		found.Dropped = append(found.Dropped, Dropped{wording.Cut(s, 80), why})
	}
	return found
}

// lessonsIn returns the lessons as they are in the answer.
func lessonsIn(label, text string) []string {
	var labelled, listed []string
	known := labels(label + "S?")
	open := false // the next line may continue the label's text
	for raw := range strings.SplitSeq(wording.Unix(text), "\n") {
		l := readLine(raw, known)
		switch {
		case l.blank:
			open = open && labelled[len(labelled)-1] == ""
		case l.label != "" && l.text == "" && l.label != label:
			open = false // a title above a list
		case l.label != "":
			labelled, open = append(labelled, l.text), true
		case open && (labelled[len(labelled)-1] == "" || l.indented && !l.bullet):
			labelled[len(labelled)-1] = strings.TrimSpace(labelled[len(labelled)-1] + " " + l.text)
		default:
			open = false
			if l.bullet && l.text != "" {
				listed = append(listed, l.text)
			}
		}
	}
	if len(labelled) == 0 {
		return listed
	}
	return labelled
}

// Words of empty praise, and of sentences that say that there is nothing to report.
var (
	emptyPraise = strings.Fields("the a an and was were is are been has have had with without no any of in to for this that it its all everything " +
		"task tasks complete completed completion code generated generation file files approach work works worked working execute executed execution " +
		"produce produced valid output outputs run ran cycle successful successfully success correctly properly well fine expected as by agent solution")
	nothingToSay = strings.Fields("none no n/a nothing learning learnings lesson lessons mistake mistakes error errors issue issues were was are is made found identified observed " +
		"noted learned in this the cycle to report avoid any there significant specific new at all be of")
)

// isEmpty reports whether a lesson has no content: it is a single word, repeats the requested form,
// says that there is nothing to report, or is empty praise.
func isEmpty(label, text string) bool {
	words := wordsOf(text)
	return len(words) < 2 || isPlaceholder(text) || only(nothingToSay, words) || label == LabelLearning && only(emptyPraise, words)
}

// lessonKey returns a key that is the same for lessons with the same words, regardless of case,
// spacing, bullets and final punctuation.
func lessonKey(text string) string {
	return strings.TrimRight(wording.OneLine(strings.ToLower(strings.TrimLeft(text, "-* \t"))), ".!?;:,… ")
}

// mergeLessons adds lessons to a file's text. Existing lines stay unchanged. If the file is full, the
// oldest lines are removed. Adding the same lessons again changes nothing.
func mergeLessons(file string, items []string) (text string, added []string) {
	lines, seen := filled(file), map[string]bool{}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t") + "\n"
		seen[lessonKey(line)] = true
	}
	for _, s := range items {
		if !seen[lessonKey(s)] {
			seen[lessonKey(s)] = true
			lines, added = append(lines, "- "+s+"\n"), append(added, s)
		}
	}
	lines = lines[max(len(lines)-maxLines, 0):]
	text = strings.Join(lines, "")
	for len(text) > maxBytes && len(lines) > 1 {
		text, lines = text[len(lines[0]):], lines[1:]
	}
	return text, added
}

// filled returns the lines of a file that are not empty.
func filled(file string) []string {
	lines := strings.Split(wording.Unix(file), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}
