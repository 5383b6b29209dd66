package failedspecs

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"strings"
)

// encodedRun matches base64 or hex, possibly with line ends.
var encodedRun = regexp.MustCompile(`[\w+/-]{16,}(?:\n[ \t]*[\w+/-]{16,})*(?:\n[ \t]*[\w+/-]{1,15})?={0,2}`)

const (
	shortestEncoded = 40 // bytes; less cannot contain a useful line of a program
	mostNested      = 3  // levels of encoding that are decoded
)

// removeEncoded replaces each encoded run whose content the filter would change with a mark. Hashes,
// tokens and encoded bodies with other text stay.
func (s *filtering) removeEncoded(text string) string {
	if s.nested == mostNested {
		return text
	}
	return encodedRun.ReplaceAllStringFunc(text, func(run string) string {
		if len(run) < shortestEncoded || s.inSpecs(run) {
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

// decodings returns the possible texts of a run of base64 or hex, with each possible start.
func decodings(run string) (all []string) {
	run = strings.NewReplacer("-", "+", "_", "/", "=", "").Replace(run)
	add := func(data []byte, err error) {
		if text := string(data); err == nil && readable(text) {
			all = append(all, text)
		}
	}
	for from := range min(4, len(run)) {
		rest := run[from:]
		if from < 2 {
			add(hex.DecodeString(rest[:len(rest)&^1]))
		}
		if len(rest)%4 == 1 {
			rest = rest[:len(rest)-1]
		}
		add(base64.RawStdEncoding.DecodeString(rest))
	}
	return all
}

// readable reports whether at least nine of ten bytes are ASCII text.
func readable(text string) bool {
	n := 0
	for _, b := range []byte(text) {
		if b == '\n' || b == '\t' || b == '\r' || b >= ' ' && b <= '~' {
			n++
		}
	}
	return n*10 >= len(text)*9
}
