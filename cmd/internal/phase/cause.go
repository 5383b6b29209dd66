package phase

import (
	"regexp"
)

// cause is the likely cause of an app that does not start, and the setting to change.
type cause struct{ why, key string }

// causes are recognized by abl's error or by the output of the app. The first match counts.
var causes = []struct {
	words *regexp.Regexp
	cause
}{
	{regexp.MustCompile(`listens on 127\.0\.0\.1 only`),
		cause{"", "app.command or app.env (many servers read HOST=0.0.0.0)"}},
	{regexp.MustCompile(`is full \(limits\.|ENOSPC|(?i)no space left on device`),
		cause{"it has no space left to write to", "limits.tmp, limits.home, limits.shm or limits.disk"}},
	{regexp.MustCompile(`it listens on ports? [\d, ]+`),
		cause{"it listens on another port", "app.port"}},
	{regexp.MustCompile(`(?i)ENOTFOUND|EAI_AGAIN|could not resolve|name resolution|getaddrinfo|dial tcp: lookup|network is unreachable|failed to fetch https?:`),
		cause{"its container cannot reach a host",
			"network.allow for the downloads of app.prepare, app.services for a database"}},
	{regexp.MustCompile(`ECONNREFUSED|(?i)connection refused.*\b(?:5432|3306|6379|27017|5672|9200)\b|could not connect to server|can't connect to (?:local )?mysql`),
		cause{"it needs a service that does not run", "app.services"}},
	{regexp.MustCompile(`(?i)cannot find (?:module|package)|module not found|no module named|modulenotfounderror|no required module provides|could not find gem|bundler: command not found|vendor/autoload\.php|unresolved import|could not resolve dependencies`),
		cause{"a dependency is missing", "app.prepare, which installs dependencies"}},
	{regexp.MustCompile(`exit code 127|(?i)command not found|: not found|no such file or directory.*\bexec|executable file not found`),
		cause{"a program is missing in the app's container", "toolchain, or images.app.dockerfile"}},
	{regexp.MustCompile(`for the host name app|(?i)blocked request|invalid host header|disallowedhost|allowed_?hosts`),
		cause{"it refuses the host name app", "app.env or the app's own list of allowed hosts"}},
	{regexp.MustCompile(`(?i)\b(?:missing|required|undefined|not set|must be set|is not defined)\b.*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b.*\b(?:missing|required|undefined|not set|must be set)\b`),
		cause{"a variable is not set", "app.env"}},
	{regexp.MustCompile(`ended with exit code 0\b`),
		cause{"it went into the background or had nothing to do",
			"app.command, which must stay in the foreground; app.kind: command for a program"}},
	{regexp.MustCompile(`GET /\S* returned [45]\d\d`),
		cause{"it responds, but not at the path that abl requests", "app.ready.path"}},
}

// causeOf returns the likely cause of a failure, the zero value if it is unknown.
func causeOf(failed, printed string) cause {
	for _, c := range causes {
		if c.words.MatchString(failed) || c.words.MatchString(printed) {
			return c.cause
		}
	}
	return cause{}
}
