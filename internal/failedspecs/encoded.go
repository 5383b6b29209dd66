package failedspecs

import (
	"encoding/base64"
	"encoding/hex"
	"strings"

	"abl/internal/lazyregexp"
)

// encodedRun is a run of base64 or hex, also across line ends.
var encodedRun = lazyregexp.New(`[\w+/-]{16,}(?:\n[ \t]*[\w+/-]{16,})*(?:\n[ \t]*[\w+/-]{1,15})?={0,2}`)

const (
	shortestEncoded = 40 // bytes: shorter ones hold no line of a program that would help a Builder
	mostNested      = 3  // encodings of encodings that are undone
)

// decoded takes out of a text each run that holds, decoded, what may not pass either. A hash, a
// token or an encoded body of other words stays.
func (s *filtering) decoded(text string) string {
	if s.nested == mostNested {
		return text
	}
	return encodedRun().ReplaceAllStringFunc(text, func(run string) string {
		if len(run) < shortestEncoded || s.says(run) {
			return run
		}
		for _, plain := range decodings(strings.Join(strings.Fields(run), "")) {
			in := &filtering{Filter: s.Filter, found: map[string]bool{}, nested: s.nested + 1}
			if in.filter(plain); len(in.found) > 0 {
				s.found[codeLines] = true
				return LeftOut(codeLines)
			}
		}
		return run
	})
}

// decodings are the texts that a run of base64 or hex may stand for, wherever in it they begin.
func decodings(run string) (all []string) {
	run = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(run)
	for from := range min(4, len(run)) {
		whole := run[from:]
		if len(whole)%4 == 1 {
			whole = whole[:len(whole)-1]
		}
		data, err := base64.RawStdEncoding.DecodeString(whole)
		if text := string(data); err == nil && readable(text) {
			all = append(all, text)
		}
		if whole = run[from:]; from < 2 {
			data, err = hex.DecodeString(whole[:len(whole)&^1])
			if text := string(data); err == nil && readable(text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// readable reports whether nine of ten bytes are those of a text in ASCII.
func readable(text string) bool {
	n := 0
	for _, b := range []byte(text) {
		if b == '\n' || b == '\t' || b == '\r' || b >= ' ' && b <= '~' {
			n++
		}
	}
	return n*10 >= len(text)*9
}
