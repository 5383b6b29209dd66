package redact

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// words in a variable's name, between underscores, say that its value is a
// secret; KEY stands in API_KEY and in GPG_KEY, not in KEYBOARD.
var words = strings.Fields("KEY KEYS APIKEY TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE PASS PWD " +
	"CREDENTIAL CREDENTIALS AUTH AUTHORIZATION BEARER COOKIE SIGNATURE SALT PAT JWT DSN PRIVATE")

// places at a name's end say that the value tells where the secret is, or what
// kind it is of.
var places = strings.Fields("FILE PATH DIR SOCK SOCKET NAME TYPE HOST PORT URL URI ENDPOINT LENGTH SIZE ALGORITHM HEADER")

// Named reports whether the name of a variable says that its value is a secret.
func Named(name string) bool {
	parts := split(name)
	if len(parts) == 0 || name == "PWD" || name == "OLDPWD" || slices.Contains(places, parts[len(parts)-1]) {
		return false
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		return slices.Contains(words, part) || strings.HasSuffix(part, "APIKEY") || strings.HasSuffix(part, "PASSWORD")
	})
}

// known are the beginnings of keys whose makers mark them.
var known = strings.Fields("sk- sk_ rk_ pk_live gho_ ghp_ ghr_ ghs_ ghu_ github_pat_ glpat- AIza AKIA ASIA " +
	"xoxa- xoxb- xoxp- xoxr- xoxs- hf_ npm_ pypi- eyJ -----BEGIN")

// Lengths from which a value of one piece looks like a secret, in bytes.
const (
	leastKnown = 12 // of those that begin like a key
	leastMixed = 16 // of small letters, capitals and digits
	leastHex   = 32
)

const (
	small   = "abcdefghijklmnopqrstuvwxyz"
	capital = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"
)

// made reports whether a value has nothing but these characters.
func made(value, of string) bool { return strings.Trim(value, of) == "" }

// Looks reports whether a value looks like a secret, whatever its name: nobody
// writes by hand what is long, of one piece and of several kinds of characters.
func Looks(value string) bool {
	switch {
	case len(value) >= leastKnown && slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(value, k) }):
		return true
	case len(value) >= leastHex && made(value, digits+"abcdefABCDEF"):
		return true
	case len(value) < leastMixed || value[0] == '/' || !made(value, small+capital+digits+"+/=_~.!$%^&*#@-"):
		return false
	}
	return strings.ContainsAny(value, small) && strings.ContainsAny(value, capital) && strings.ContainsAny(value, digits)
}

// Random reports whether a value that is long enough looks as if drawn by lot: like a
// key, or letters and digits of one case that take turns.
func Random(value string) bool {
	isDigit := func(r rune) bool { return '0' <= r && r <= '9' }
	words := strings.FieldsFunc(value, isDigit)
	numbers := strings.FieldsFunc(value, func(r rune) bool { return !isDigit(r) })
	const some = 5
	mixed := made(value, small+capital+digits) && len(words)+len(numbers) > some && len(strings.Join(numbers, "")) >= some
	return len(value) >= leastMixed && (mixed || Looks(value))
}

// Secrets are the secrets among variables: the values whose name says so, the
// passwords in addresses and, with looks, the values that look like one.
// weak names the variables whose secret cannot be redacted, because it may stand
// in innocent text: it is short, or a password that is a word or a number, as of
// a database on one's own machine.
func Secrets(vars map[string]string, looks bool) (secrets, weak []string) {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		value := vars[name]
		found := passwords(value)
		if Named(name) || looks && Looks(value) {
			found = append(found, value)
		}
		for _, secret := range found {
			switch {
			case len(secret) >= Shortest && (!common(secret) || secret == value && isKey(name)):
				secrets = append(secrets, secret)
			case secret != "" && !slices.Contains(weak, name):
				weak = append(weak, name)
			}
		}
	}
	return secrets, weak
}

// Holds reports whether a variable has a secret that no container may have: its value looks like one, its
// name says so, or it is an address with a password. A plain word or number is none unless the name is
// that of a key: many people have POSTGRES_PASSWORD=postgres for their own machine.
func Holds(name, value string) bool {
	real := func(secret string) bool { return secret != "" && !common(secret) }
	return Looks(value) || Named(name) && (isKey(name) || real(value)) || slices.ContainsFunc(passwords(value), real)
}

// common reports whether a secret is a word or a number that people write about.
func common(secret string) bool {
	const leastWord, leastNumber = 16, 12
	return made(secret, small+capital) && len(secret) < leastWord || made(secret, digits) && len(secret) < leastNumber
}

// isKey reports whether a name is that of a key: nobody chooses those by heart.
func isKey(name string) bool {
	return slices.ContainsFunc(split(name), func(part string) bool {
		return strings.HasSuffix(part, "KEY") || part == "TOKEN"
	})
}

// split takes a name apart.
func split(name string) []string {
	return strings.FieldsFunc(strings.ToUpper(name), func(r rune) bool { return r == '_' || r == '.' || r == '-' })
}

// passwords are those in an address: of its user, and of its query.
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
