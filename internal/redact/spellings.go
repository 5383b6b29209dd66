package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// mark is what is shown instead: enough to tell two keys apart, and nothing
// that means something in JSON, CSV or HTML.
func mark(secret string) string {
	text := strings.TrimSpace(secret)
	if last := text[max(0, len(text)-2):]; len(last) == 2 && made(last, small+capital+digits) {
		return "[secret …" + last + "]"
	}
	return "[secret]"
}

// leastLine is how long a line of a secret of several lines must be to be a
// secret by itself; the last line of a key in PEM may be a few letters.
const leastLine = 16

// parts are what is looked for of a secret: the whole, without the space around
// it, and each of its lines, for programs print line by line.
func parts(secret string) []string {
	all := []string{secret}
	if trimmed := strings.TrimSpace(secret); len(trimmed) >= Shortest {
		all = append(all, trimmed)
	}
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) >= leastLine && !strings.HasPrefix(line, "-----") {
			all = append(all, line)
		}
	}
	return all
}

// spellings returns the forms in which programs print a secret: as it is, in
// JSON, in an address, in a page, in hex, and in base64 wherever in the encoded
// text it stands.
func spellings(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	quoted := strconv.Quote(secret)
	out := []string{secret, digits, strings.ToUpper(digits), html.EscapeString(secret), quoted[1 : len(quoted)-1]}
	// With and without what some encoders of JSON escape besides, and JSON within JSON,
	// as agents quote the output of their tools.
	strict := jsonText(secret)
	loose := unescaped.Replace(strict)
	out = append(out, strict, loose, strings.ReplaceAll(loose, "/", `\/`), strings.ReplaceAll(strict, "/", `\/`),
		ascii(loose), jsonText(strict), jsonText(loose), unescaped.Replace(jsonText(loose)))
	for _, s := range []string{url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")} {
		out = append(out, s, lowered(s))
	}
	for before := range 3 {
		out = append(out, inBase64(base64.RawStdEncoding, secret, before), inBase64(base64.RawURLEncoding, secret, before))
	}
	return out
}

// unescaped undoes what encoders of JSON escape only to be safe in a page.
var unescaped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// jsonText is text as JSON, without the quotes around it. All text can be JSON.
func jsonText(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted[1 : len(quoted)-1])
}

// ascii escapes what is not ASCII, as some encoders of JSON do.
func ascii(text string) string {
	var out []byte
	for _, r := range text {
		if r < 0x80 {
			out = append(out, byte(r))
		} else {
			out = append(out, escaped(r)...)
		}
	}
	return string(out)
}

// lowered has the digits after each percent sign in small letters.
func lowered(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(out)
}

// inBase64 is what is the same in every encoding of the secret with a number of
// bytes before it: the characters that no neighbour has a bit in.
func inBase64(enc *base64.Encoding, secret string, before int) string {
	const byteBits, charBits = 8, 6
	text := enc.EncodeToString(append(make([]byte, before), secret...))
	from := (before*byteBits + charBits - 1) / charBits
	to := (before + len(secret)) * byteBits / charBits
	return text[from:to]
}
