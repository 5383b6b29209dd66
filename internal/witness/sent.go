package witness

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sending is what an action says in words about the request.
type sending struct {
	form     url.Values // fields of a form
	text     string     // a text of the body
	empty    bool       // no body
	token    bool       // a token, a key or a cookie
	mentions []string   // fields that are sent with a wrong value
	omits    []string   // fields that are not sent
}

var (
	sentForm = regexp.MustCompile(`(?i)(?:\b(?:form|body|data|fields?|urlencoded)\b[\w :-]*?[ "'(]|(?:-d|--data\S*) ')[ "']*([\w.-]+=[^\s&"',;)]*(?:&[\w.-]+=[^\s&"',;)]*)*)`)
	sentText = regexp.MustCompile(`(?i)\bbody(?: is| of|:)? ("(?:[^"\\]|\\.)+")`)
	sentNone = regexp.MustCompile(`(?i)\b(?:with an empty|without an?y?|with no) (?:request )?body\b`)
	// "with a wrong token", "with that cookie"
	sentToken = regexp.MustCompile(`(?i)\bwith (?:an? |the |that |this )?(?:[\w'’-]+ ){0,3}(?:token|api[- ]key|cookie)\b`)
	isToken   = regexp.MustCompile(`(?i)auth|token|key|cookie|session|code`)
	// "with a wrong password"
	wrongField = regexp.MustCompile(`(?i)\bwith an? (?:wrong|incorrect|invalid|bad|malformed|weak|short|long|empty|blank|negative) (password|email|url|title|username|age|price|quantity|amount|code|pin|text)\b`)
	// "without a title"
	missingField = regexp.MustCompile(`\bwithout (?:an? |the )?([a-z]\w*)(?: field| key)?(?:[,;.)]|$)`)
	notField     = regexp.MustCompile(`^(?:body|content|data|header|token|cookie|login|auth|authentication|authorization|credentials|query|parameters?|arguments|session|key)$`)
)

// readSending reads the words of an action after its path. above is the number of bytes that belong
// to the text above the action.
func readSending(text string, above int) (s sending) {
	own := text[above:]
	if m := sentForm.FindStringSubmatch(own); m != nil {
		s.form, _ = url.ParseQuery(m[1])
	}
	if m := sentText.FindStringSubmatch(own); m != nil {
		s.text = unquoted(m[1])
	}
	s.empty = sentNone.MatchString(own)
	if m := sentToken.FindString(text); m != "" {
		s.token = !negated.MatchString(m)
	}
	for _, m := range wrongField.FindAllStringSubmatch(text, -1) {
		s.mentions = append(s.mentions, strings.ToLower(m[1]))
	}
	for _, m := range missingField.FindAllStringSubmatch(text, -1) {
		if !notField.MatchString(m[1]) {
			s.omits = append(s.omits, m[1])
		}
	}
	return s
}

// String lists what is compared.
func (s sending) String() string {
	var all []string
	if len(s.form) > 0 {
		all = append(all, "form "+s.form.Encode())
	}
	if s.text != "" {
		all = append(all, "body "+strconv.Quote(s.text))
	}
	if s.empty {
		all = append(all, "no body")
	}
	if s.token {
		all = append(all, "with a token, key or cookie")
	}
	for _, name := range s.mentions {
		all = append(all, "with "+name)
	}
	for _, name := range s.omits {
		all = append(all, "without "+name)
	}
	return strings.Join(all, ", ")
}

// fits reports whether the request of x is as the words say. A body that abl could not keep fits.
func (s sending) fits(r request, x Exchange) bool {
	kept := int64(len(x.Sent.Begins)) == x.Sent.Bytes
	switch {
	case s.token && !x.bringsToken(r) && kept:
		return false
	case !kept:
		return true
	case s.empty && x.Sent.Bytes > 0 && !slices.Contains([]string{"{}", `""`, "null"}, string(bytes.TrimSpace(x.Sent.Begins))):
		return false
	case s.text != "" && !(written{text: s.text}).isIn(string(x.Sent.Begins)) &&
		!slices.ContainsFunc(readings(x.Sent.Begins), written{text: s.text}.isIn):
		return false
	}
	return s.formFits(x) && s.fieldsFit(x)
}

// formFits compares the fields of a form.
func (s sending) formFits(x Exchange) bool {
	has, err := url.ParseQuery(string(x.Sent.Begins))
	multipart := strings.HasPrefix(strings.ToLower(x.SentHeader.Get("Content-Type")), "multipart/")
	for key, want := range s.form {
		open := isOpen(want[0])
		switch {
		case multipart && (open || bytes.Contains(x.Sent.Begins, []byte(want[0]))):
		case err != nil || !has.Has(key) || !open && !slices.Contains(has[key], want[0]):
			return false
		}
	}
	return true
}

// fieldsFit reports whether x has the fields with a wrong value and lacks those without a value.
func (s sending) fieldsFit(x Exchange) bool {
	body := strings.ToLower(string(x.Sent.Begins))
	doc, isDoc := decode(x.Sent.Begins)
	object, _ := doc.(map[string]any)
	for _, name := range s.mentions {
		has := strings.Contains(body, name) || strings.Contains(strings.ToLower(x.Target), name)
		for key := range object {
			has = has || len(key) > 1 && strings.Contains(name, strings.ToLower(key))
		}
		if !has && x.SentHeader.Get("Authorization") == "" {
			return false
		}
	}
	for _, name := range s.omits {
		if value := object[name]; value != nil && value != "" || body != "" && !isDoc && !strings.Contains(body, "=") {
			return false
		}
	}
	return true
}

// bringsToken reports whether x may have a token, a key or a cookie.
func (x Exchange) bringsToken(r request) bool {
	for name := range x.SentHeader {
		if isToken.MatchString(name) {
			return true
		}
	}
	return isToken.MatchString(x.Target) || isToken.Match(x.Sent.Begins) || isToken.MatchString(r.path)
}
