package learner

import (
	"slices"
	"strings"

	"abl/internal/wording"
)

const (
	// The labels that lessons have in answers.
	LabelLearning = "LEARNING"
	LabelMistake  = "MISTAKE"

	// Bounds of what is kept: of an answer, and of memory.txt and mistakes.txt, which every
	// prompt holds whole.
	maxItem  = 400 // runes of a lesson
	maxItems = 20  // lessons of one answer
	maxLines = 200
	maxBytes = 48 << 10
)

// Dropped is a lesson that is not kept, and why.
type Dropped struct {
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Lessons are what an answer holds.
type Lessons struct {
	Items   []string  `json:"items"`
	Dropped []Dropped `json:"dropped,omitempty"`
}

// Summary is a line for each of them.
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

// ParseLessons reads an answer. Labelled lines count; where there is none, the items of
// lists do, for a model that forgot the label has answered all the same.
func ParseLessons(label, text string) Lessons {
	found := Lessons{Items: []string{}}
	seen := map[string]bool{}
	for _, s := range saidLessons(label, text) {
		if s = wording.Cut(wording.OneLine(s), maxItem); s == "" {
			continue
		}
		why := isEmpty(label, s)
		switch {
		case why == "" && seen[lessonKey(s)]:
			why = "said twice"
		case why == "" && len(found.Items) == maxItems:
			why = "too many in one answer"
		}
		if why != "" {
			found.Dropped = append(found.Dropped, Dropped{wording.Cut(s, 80), why})
			continue
		}
		seen[lessonKey(s)] = true
		found.Items = append(found.Items, s)
	}
	return found
}

// saidLessons are the lessons as the answer has them.
func saidLessons(label, text string) []string {
	var labelled, listed []string
	known := labels(label + "S?")
	open := false // the label's text may go on in the next line
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

// Words of sentences that say no more than that all went well, and of those that
// say that there is nothing to say.
var (
	hollow = strings.Fields("the a an and was were is are been has have had with without no any of in to for this that it its all everything " +
		"task tasks complete completed completion code generated generation file files approach work works worked working execute executed execution " +
		"produce produced valid output outputs run ran cycle successful successfully success correctly properly well fine expected as by agent solution")
	none = strings.Fields("none no n/a nothing learning learnings lesson lessons mistake mistakes error errors issue issues were was are is made found identified observed " +
		"noted learned in this the cycle to report avoid any there significant specific new at all be of")
)

// isEmpty says why a lesson is none, "" for one that is worth keeping.
func isEmpty(label, text string) string {
	words := wordsOf(text)
	switch {
	case isPlaceholder(text):
		return "repeats the question"
	case len(words) == 0:
		return "says nothing"
	case only(none, words):
		return "says that there is none"
	case label == LabelLearning && only(hollow, words):
		return "generic"
	case len(words) == 1:
		return "a single word"
	}
	return ""
}

// lessonKey is what makes two lessons the same: their words, whatever their case,
// spacing, bullets and final punctuation.
func lessonKey(text string) string {
	return strings.TrimRight(wording.OneLine(strings.ToLower(strings.TrimLeft(text, "-* \t"))), ".!?;:,… ")
}

// mergeLessons adds lessons to a file's text. What a person wrote there stays as it is,
// line by line; when there is no more room, the oldest lines go first. Done twice
// it is done once.
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

// filled are the lines of a file that are not empty.
func filled(file string) []string {
	lines := strings.Split(wording.Unix(file), "\n")
	return slices.DeleteFunc(lines, func(line string) bool { return strings.TrimSpace(line) == "" })
}

// lessonsIn are the lessons of a file, without their bullets.
func lessonsIn(file string) []string {
	items := filled(file)
	for i, item := range items {
		item = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(item), "- "), "* ")
		items[i] = strings.TrimSpace(item)
	}
	return items
}
