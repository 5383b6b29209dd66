package failedspecs

import (
	"regexp"
	"sync"
)

// Kinds of text that do not reach the Builder.
const (
	stackTrace = "a stack trace"
	codeLines  = "code"
	testOutput = "test output"
	codePlace  = "a place in the code"
	ownPath    = "a path of a workspace"
	testName   = "the name of a test"
)

var kinds = [...]string{stackTrace, codeLines, testOutput, codePlace, ownPath, testName}

// LeftOut returns the mark that replaces removed text.
func LeftOut(what string) string { return "[left out: " + what + "]" }

// pattern matches text that does not reach the Builder. If it has a group, only that is removed.
type pattern struct {
	kind string
	*regexp.Regexp
}

const (
	sources = `(?:js|mjs|cjs|jsx|ts|mts|tsx|py|go|rb|rs|java|kt|scala|php|cs|c|cc|cpp|h|hpp|swift|ex|exs|sh|bats|pl|lua)`
	gap     = `(?:\\[nrt]|\s)*` // white space, also escaped as in JSON
	at      = `(?:(?:\\[nrt]|\s)+|\b)at`
	in      = `(?:(?:\\[nrt]|\s)+|\b)in`
	noFile  = `[^\s"'<>()\[\]\\,;]`
)

// line reports whether the whole line with a match is removed.
func (p pattern) line() bool { return p.kind == testOutput || p.kind == codeLines }

// patterns match whole lines, then lines of stack traces of common languages, also several on one
// line, and then parts of a line that name files of a workspace, places in them, or tests.
var patterns = sync.OnceValue(func() (all []pattern) {
	for _, p := range [][2]string{
		{testOutput, `^\s*(?:(?:not )?ok \d+(?: |$)|\d+\.\.\d+$|TAP version \d+|Bail out!|--- (?:FAIL|PASS|SKIP)[: ]|(?:FAIL|PASS|ok)\s+[\w./-]+\s+[\d.]+m?s$|(?:FAILED|PASSED|ERROR) \S+::|# (?:tests|pass|fail|skip|todo) \d+$|[✓✔✗✘✕✖] )`},
		{codeLines, `^\s*(?:#!/|#include\s*[<"]|<\?php\b|package (?:main|\w+;)$|using [\w.]+;$|import [\w*{}, ]+ from ['"]|import ['"][^'"]+['"];?$|import [\w.]+(?: as \w+|;)$|from [\w.]+ import \w)`},
		{codeLines, `^\s*(?:export )?(?:const|let|var) [\w{\[$][^=]*=`},
		{codeLines, `^\s*(?:export )?(?:default )?(?:async )?(?:function\b[^(]*\([^)]*\) ?\{|def \w+\s*\(.*:|class \w+(?:\(.*\))?:$|class \w+ .*\{$|func (?:\(\w+ [^)]*\) )?\w+\(|(?:pub )?fn \w+.*[({]|(?:public|private|protected|static) .*[({;]$)`},
		{codeLines, `^\s*(?:(?:if|for|while|switch|catch|\} else if) ?\(.*\) ?\{$|\} (?:else|finally|catch)\b.*\{$|if __name__|(?:try|finally|else):$|except(?: [A-Z]\w*(?: as \w+)?)?:$|throw new \w|raise \w+\(|return .*;$|await \w+[.(]|\}\)+;?$)`},
		{codeLines, `^\s*(?:self\.)?(?:assert\w*\s*\(|assert \S+.* (?:==|!=|not in) |(?:it|test|describe)\s*\(\s*['"\x60]|t\.(?:Errorf?|Fatalf?|Run|Log)\()|\bexpect\([^\n]*\)\s*\.\s*(?:not\s*\.\s*)?(?:to|be)\w*|\bassert\.\w+\(|\brequire\(['"]`},
		{codeLines, `^\s*(?:set -[euxo]+|esac$|if \[|for \w+ in .*; ?do$|while .*; ?do$|\w+=\$\(|\[\[? .* (?:=|==|!=|-\w\w) .* \]\]?(?: [|&]{2}.*)?$|\$\w+ = .*;$)`},

		{stackTrace, at +
			` (?:async |new )*[\w.$<>\[\]#/@]+(?: \[as [\w.$]+\])? \([^()\s]*(?::\d+){1,2}\)`},
		{stackTrace, at +
			` [\w.$<>/]+\((?:[\w$]+\.(?:java|kt|scala|groovy)(?::\d+)?|Native Method|Unknown Source)\)`},
		{stackTrace, at + ` (?:async )?(?:file:/|node:|/|[A-Z]:\\)` + noFile + `*(?::\d+){1,2}`},
		{stackTrace, `^\s*at [\w<>\x60]+(?:\.[\w<>\x60]+)+\([^()]*\)(?: in ` + noFile +
			`+:line \d+)?$`},
		{stackTrace, in + ` ` + noFile + `+:line \d+`},
		{stackTrace, `(?:Exception )?Traceback \(most recent call last\):?`},
		{stackTrace, gap + `File \\?"[^"\n]+", line \d+(?:, in [\w.<>]+)?`},
		{stackTrace, `^[\w./*()-]*\.[\w.*()-]+\((?:(?:0x[0-9a-f]+\??|\.\.\.|[{}]+|\?)(?:, )?)+\)$`},
		{stackTrace, `goroutine \d+ \[[^\]\n]*\]:?`},
		{stackTrace, gap + noFile + `+\.go:\d+(?: \+0x[0-9a-f]+)?`},
		{stackTrace, gap + `#\d+ ` + noFile + `+\.php\(\d+\)(?:: [^\s\\]+)?`},
		{stackTrace, in + ` ` + noFile + `+\.php(?: on line |:)\d+`},
		{stackTrace, gap + `(?:from )?` + noFile + `+\.rb:\d+:in [\x60'"][^'"\n]*['"]?`},
		{stackTrace, `panicked at [^\n]*?\.rs:\d+:\d+:?`},
		{stackTrace, `(?i)\bstack (?:trace|backtrace):`},

		{ownPath, `/(?:workspace|abl/(?:in|out|bin)|home/agent)(?:/` +
			noFile + `*|\b)`},
		{ownPath, `(?:^|[^\w/.-])((?:\./)?(?:\.abl|node_modules|(?:builder|verifier)_reports)/` + noFile + `*)`},
		{ownPath, `(?:^|[^\w/.-])((?:\./)?(?:run\.sh|failed_specs\.md)\b)`},
		{ownPath, `(?:^|[\s"'\x60(])((?:\./)?(?:src|tests?|specs?|phase\d+|cases|e2e)/[\w./@-]*\.` + sources +
			`\b(?::\d+)*)`},
		{testName, `(?:^|[^\w/.-])([\w./-]*(?:_test|\.test|\.spec|_spec)\.` + sources +
			`\b(?:::?[\w:]+)*)`},
		{testName, `(?:^|[^\w/.-])([\w./-]*\btest_\w+\.` + sources + `\b(?:::?[\w:]+)*)`},
		{testName, `(?:^|[^\w/.-])([\w./-]*\bP\d+\.C\d+[\w-]*\.` + sources + `\b)`},
		{testName, `(?:^|[^\w"'=@/])(test_\w+\(\)|Test[A-Z]\w+/\w+)`},
		{codePlace, `(?:^|[^\w/.:@-])((?:\./|/)?[\w@-][\w./@-]*\.` + sources + `(?::\d+){1,2})\b`},
	} {
		all = append(all, pattern{p[0], regexp.MustCompile(p[1])})
	}
	return all
})
