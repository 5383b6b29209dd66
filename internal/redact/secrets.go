package redact

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// words are the parts of a variable's name, between underscores, that mark its value as a
// secret. KEY is in API_KEY, but not in KEYBOARD.
var words = strings.Fields("KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE PASS PWD " +
	"CREDENTIAL CREDENTIALS AUTH AUTHORIZATION BEARER COOKIE SIGNATURE SALT PAT JWT DSN PRIVATE")

// places are the last parts of names whose value is the location or the type of a secret.
var places = strings.Fields("FILE PATH DIR SOCK SOCKET NAME TYPE HOST PORT URL URI ENDPOINT LENGTH SIZE ALGORITHM " +
	"HEADER")

// Named reports whether the name of a variable marks its value as a secret.
func Named(name string) bool {
	parts := split(name)
	if len(parts) == 0 || name == "PWD" || name == "OLDPWD" || slices.Contains(places, parts[len(parts)-1]) {
		return false
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		return slices.Contains(words, part) || strings.HasSuffix(part, "APIKEY") || strings.HasSuffix(part, "PASSWORD")
	})
}

// known are prefixes of common keys.
var known = strings.Fields("sk- sk_ rk_ pk_live gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- AIza AKIA ASIA " +
	"xoxa- xoxb- xoxp- xoxr- xoxs- hf_ npm_ pypi- eyJ -----BEGIN")

// Minimum lengths in bytes of a value without spaces that looks like a secret.
const (
	leastKnown = 12 // with a known prefix
	leastMixed = 16 // with lower and upper case letters and digits
	leastHex   = 32
)

const (
	small   = "abcdefghijklmnopqrstuvwxyz"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// consistsOf reports whether a value consists only of these characters.
func consistsOf(value, of string) bool { return strings.Trim(value, of) == "" }

// Looks reports whether a value looks like a secret, independent of its name: long, without spaces
// and with several types of characters.
func Looks(value string) bool {
	switch {
	case len(value) >= leastKnown && slices.ContainsFunc(known,
		func(k string) bool { return strings.HasPrefix(value, k) }):
		return true
	case len(value) >= leastHex && consistsOf(value, digits+"abcdefABCDEF"):
		return true
	case len(value) < leastMixed || value[0] == '/' || !consistsOf(value, small+capital+digits+"+/=_~.!$%^&*#@-"):
		return false
	}
	return strings.ContainsAny(value, small) && strings.ContainsAny(value, capital) && strings.ContainsAny(value, digits)
}

// Random reports whether a long value looks random: like a key, or with alternating letters and
// digits.
func Random(value string) bool {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	words := strings.FieldsFunc(value, isDigit)
	numbers := strings.FieldsFunc(value, func(r rune) bool { return !isDigit(r) })
	const some = 5
	mixed := consistsOf(value, small+capital+digits) &&
		len(words)+len(numbers) > some && len(strings.Join(numbers, "")) >= some
	return len(value) >= leastMixed && (mixed || Looks(value))
}

// Secrets returns the secrets among variables: values whose name says so, passwords in URLs and,
// with looks, values that look like one. weak are the names of variables with a secret that cannot
// be removed, because it may occur in other text: it is short, or a password that is a word or a
// number.
func Secrets(vars map[string]string, looks bool) (secrets, weak []string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := vars[name]
		found := passwords(value)
		if Named(name) || looks && Looks(value) {
			found = append(found, value)
		}
		for _, secret := range found {
			switch {
			case len(secret) >= Shortest && (!isCommon(secret) || secret == value && isKey(name)):
				secrets = append(secrets, secret)
			case secret != "" && !slices.Contains(weak, name):
				weak = append(weak, name)
			}
		}
	}
	return secrets, weak
}

// Holds reports whether a variable has a secret that no container may have: its value looks like
// one, its name says so, or it is a URL with a password. A plain word or number counts only if the
// name is that of a key, because POSTGRES_PASSWORD=postgres is common in local setups.
func Holds(name, value string) bool {
	real := func(secret string) bool { return secret != "" && !isCommon(secret) }
	return Looks(value) || Named(name) && (isKey(name) || real(value)) || slices.ContainsFunc(passwords(value), real)
}

// isCommon reports whether a secret is a short word or number.
func isCommon(secret string) bool {
	const leastWord, leastNumber = 16, 12
	return consistsOf(secret, small+capital) && len(secret) < leastWord ||
		consistsOf(secret, digits) && len(secret) < leastNumber
}

// isKey reports whether a name is that of a key, which is never a word that the user chose.
func isKey(name string) bool {
	return slices.ContainsFunc(split(name), func(part string) bool {
		return strings.HasSuffix(part, "KEY") || part == "TOKEN"
	})
}

// split splits a name at separators.
func split(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '.' || r == '-' })
}

// passwords returns the password of a URL's user and the passwords in its query.
func passwords(value string) (all []string) {
	u, err := url.Parse(value)
	if err != nil || !strings.Contains(value, "://") {
		return nil
	}
	if word, ok := u.User.Password(); ok {
		all = append(all, word)
	}
	for name, values := range u.Query() {
		if Named(name) {
			all = append(all, values...)
		}
	}
	return all
}
