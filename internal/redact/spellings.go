package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// spellings returns the forms in which programs print a secret: as it is, in
// JSON, in an address, in hex, and in base64 wherever in the encoded text it
// stands.
func spellings(secret string) []string {
	digits := hex.EncodeToString([]byte(secret))
	out := []string{secret, digits, strings.ToUpper(digits)}
	out = append(out, inJSON(secret)...)
	out = append(out, inURL(secret)...)
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before := range 3 {
			out = append(out, inBase64(enc, secret, before))
		}
	}
	return out
}

// inJSON spells the secret with and without what some encoders escape besides.
func inJSON(secret string) []string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return nil
	}
	strict := string(quoted[1 : len(quoted)-1])
	loose := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(strict)
	return []string{strict, loose, strings.ReplaceAll(loose, "/", `\/`), strings.ReplaceAll(strict, "/", `\/`)}
}

var percent = regexp.MustCompile(`%[0-9A-F]{2}`)

func inURL(secret string) []string {
	var out []string
	for _, s := range []string{url.QueryEscape(secret), url.PathEscape(secret), strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")} {
		out = append(out, s, percent.ReplaceAllStringFunc(s, strings.ToLower))
	}
	return out
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
