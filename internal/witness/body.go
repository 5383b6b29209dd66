package witness

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// bodyText is a text that a body contains, is, or lacks.
type bodyText struct {
	written
	whole  bool // a body of plain text has nothing else
	absent bool // it must not be in the body
}

// form says what a body is, apart from its texts.
type form struct {
	empty bool // it has no bytes
	json  bool // it is a JSON document
}

var (
	// The text after these words does not have to be in the body.
	notInBody = regexp.MustCompile(`(?i)\b(?:by|than|like|for|from|to|per|unlike|cookie|header|parameter|query)[:\s]*(?:the |an? )?$|=\s*$`)
	// The text before these words is the name of something else.
	isName = regexp.MustCompile(`(?i)^ (?:cookie|header|parameter|query)\b`)
	// plainText finds a text without quotes. A match of describes is a description, not a text.
	plainText = regexp.MustCompile(`(?i)\b(?:with (?:the )?text|with (?:the |a )?body|body (?:is|of))[: ]\s*([^\s,;][^,;]*?)\s*(?:[,;]|\.?$| and | but )`)
	describes = regexp.MustCompile(`(?i)\b(?:of|that|in|which|containing|contains|having|from|as|sent|for|the|an?|it|is|same|with|no|\d+ (?:bytes|characters)|named|saying|says|like|to|describing|explaining|stating|empty|only|unchanged)\b|^(?:json|html|xml|text)$`)
	// A text after these words is the whole body: "200 pong", "with body pong".
	wholeBody = regexp.MustCompile(`(?i)(?:^|^\W*(?:[1-5]\d\d|2xx)(?: ok| created)?|\bbody(?: is| of)?|\bexactly(?: the text)?)[:,]?\s*$`)
	// A text after these words must not be in the body.
	lacking = regexp.MustCompile(`(?i)(?:\b(?:without|no|never|nor|but not)|(?:\bnot|n['’]t) (?:contain|show|include|have|mention|reveal|expose|leak|return)\w*|\b(?:containing|showing|including) no)(?: (?:an?|any|the|its|keys?|fields?|text|word))*\s+$`)
	// The text between two texts of a list.
	listed = regexp.MustCompile(`^(?:,|,? (?:and|or|nor))\s+$`)

	emptyBody = regexp.MustCompile(`(?i)\b(?:an? empty|no|without (?:an?|any)|with(?:out)? no) (?:response )?body\b|\bbody is empty\b|\bempty body\b`)
	jsonBody  = regexp.MustCompile(`(?i)\b(?:as|in|valid|is) json\b|\bjson (?:object|array|list|document|body)\b`)
)

// readForm reads what a result without its quoted texts says of the body.
func readForm(plain string) (f form) {
	is := func(pattern *regexp.Regexp) bool {
		m := pattern.FindStringIndex(plain)
		return m != nil && !negated.MatchString(plain[:m[0]])
	}
	return form{empty: is(emptyBody), json: is(jsonBody)}
}

// ofBody reports whether the claim says something about the body.
func (r response) ofBody() bool { return len(r.texts) > 0 || r.json != nil || r.form != form{} }

// named reports whether the claim names a value of the body.
func (r response) named() bool {
	return r.json != nil || slices.ContainsFunc(r.texts, func(p bodyText) bool { return !p.absent })
}

// maxTexts is the maximum number of texts in a contract.
const maxTexts = 10

func (c *Claim) readTexts(vars []string, words string) {
	end, absent := 0, false // of the previous text
	for _, m := range quoted.FindAllStringIndex(words, maxTexts) {
		text, before := strings.TrimRight(unquoted(words[m[0]:m[1]]), ".,"), blankQuotes(words[:m[0]])
		absent = lacking.MatchString(before) || absent && listed.MatchString(words[end:m[0]])
		end = m[1]
		switch {
		case isName.MatchString(words[m[1]:]):
		case absent:
			c.addText(bodyText{written: written{text, vars}, absent: true})
		case !notInBody.MatchString(before) && !negated.MatchString(before) && !isMissing.MatchString(words[m[1]:]):
			c.addText(bodyText{written: written{text, vars}, whole: wholeBody.MatchString(before)})
		}
	}
	if m := plainText.FindStringSubmatchIndex(blankQuotes(words)); m != nil && !negated.MatchString(words[:m[0]]) {
		if text := strings.TrimSpace(words[m[2]:m[3]]); !describes.MatchString(text) && !strings.HasPrefix(text, `"`) {
			c.addText(bodyText{written: written{text, vars}, whole: wholeBody.MatchString(words[:m[2]])})
		}
	}
}

// addText adds a text unless any text fits it.
func (c *Claim) addText(p bodyText) {
	if p.text != "" && (!p.open() || p.repeats(c.requests)) {
		c.texts = append(c.texts, p)
	}
}

// repeats reports whether the text is a placeholder of a request.
func (w written) repeats(all []request) bool {
	name := placeholderName(w.text)
	return slices.ContainsFunc(all, func(r request) bool { return slices.Contains(r.placeholders(), name) })
}

// unquoted returns the content of a quoted text.
func unquoted(q string) string {
	var text string
	if json.Unmarshal([]byte(q), &text) == nil {
		return text
	}
	return strings.Trim(q, `"“”`)
}

// fits reports whether a body fits the part after a request with these echoes. doc is the body's
// JSON document, if isDoc is set.
func (p bodyText) fits(body []byte, doc any, isDoc bool, echoes []echo) bool {
	w := p.fill(echoes)
	if w.open() {
		return true
	}
	has := w.isIn(string(body)) || slices.ContainsFunc(readings(body), w.isIn) || isDoc && w.field(doc)
	plain := !bytes.ContainsRune(body, '<')
	switch text, isText := doc.(string); {
	case p.absent:
		return !has
	case p.whole && isDoc && isText:
		return w.equals(strings.TrimSpace(text))
	case p.whole && plain && (!isDoc || isNumber(doc)):
		return w.equals(string(bytes.TrimSpace(body)))
	}
	return has
}

func isNumber(doc any) bool {
	_, ok := doc.(json.Number)
	return ok
}

// isWord reports whether r belongs to a word, so that a text that ends with r does not end before
// it. Scripts without blanks between words have no such letters.
func isWord(r rune) bool {
	return r == '_' || unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Nd)
}

// inWord reports whether text[at] continues the word or the number before it: "13", "1.5", "pages".
func inWord(text string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:at])
	after, n := utf8.DecodeRuneInString(text[at:])
	if isWord(before) && isWord(after) {
		return true
	}
	beyond, _ := utf8.DecodeRuneInString(text[min(len(text), at+n):])
	return unicode.IsDigit(before) && (after == '.' || after == ',') && unicode.IsDigit(beyond)
}
