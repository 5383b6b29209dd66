package failedspecs

import (
	"regexp"
	"slices"
	"strings"
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
	need string // each match contains one of these strings, separated by |; searching them is much faster
	at   func() *regexp.Regexp
}

// lazy returns a function that compiles expr on its first call. Names of tests may be thousands of
// patterns, of which most are never needed.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// mayMatch reports whether the pattern can match in a text.
func (p pattern) mayMatch(text string) bool {
	return slices.ContainsFunc(strings.Split(p.need, "|"), func(word string) bool { return strings.Contains(text, word) })
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
var patterns = []pattern{
	{testOutput, "ok|..|TAP|Bail|---|PASS|FAIL|ERROR|# |✓|✔|✗|✘|✕|✖",
		lazy(`^\s*(?:(?:not )?ok \d+(?: |$)|\d+\.\.\d+$|TAP version \d+|Bail out!|--- (?:FAIL|PASS|SKIP)[: ]|(?:FAIL|PASS|ok)\s+[\w./-]+\s+[\d.]+m?s$|(?:FAILED|PASSED|ERROR) \S+::|# (?:tests|pass|fail|skip|todo) \d+$|[✓✔✗✘✕✖] )`)},
	{codeLines, "#!|#include|<?php|package |using |import ",
		lazy(`^\s*(?:#!/|#include\s*[<"]|<\?php\b|package (?:main|\w+;)$|using [\w.]+;$|import [\w*{}, ]+ from ['"]|import ['"][^'"]+['"];?$|import [\w.]+(?: as \w+|;)$|from [\w.]+ import \w)`)},
	{codeLines, "const |let |var ", lazy(`^\s*(?:export )?(?:const|let|var) [\w{\[$][^=]*=`)},
	{codeLines, "function|def |class |func |fn |public |private |protected |static ",
		lazy(`^\s*(?:export )?(?:default )?(?:async )?(?:function\b[^(]*\([^)]*\) ?\{|def \w+\s*\(.*:|class \w+(?:\(.*\))?:$|class \w+ .*\{$|func (?:\(\w+ [^)]*\) )?\w+\(|(?:pub )?fn \w+.*[({]|(?:public|private|protected|static) .*[({;]$)`)},
	{codeLines, "if|for|while|switch|catch|else|finally|try|except|throw |raise |return |await |})",
		lazy(`^\s*(?:(?:if|for|while|switch|catch|\} else if) ?\(.*\) ?\{$|\} (?:else|finally|catch)\b.*\{$|if __name__|(?:try|finally|else):$|except(?: [A-Z]\w*(?: as \w+)?)?:$|throw new \w|raise \w+\(|return .*;$|await \w+[.(]|\}\)+;?$)`)},
	{codeLines, "assert|expect|require|it|test|describe|t.",
		lazy(`^\s*(?:self\.)?(?:assert\w*\s*\(|assert \S+.* (?:==|!=|not in) |(?:it|test|describe)\s*\(\s*['"\x60]|t\.(?:Errorf?|Fatalf?|Run|Log)\()|\bexpect\([^\n]*\)\s*\.\s*(?:not\s*\.\s*)?(?:to|be)\w*|\bassert\.\w+\(|\brequire\(['"]`)},
	{codeLines, "set -|esac|if [|for |while |$|[ ",
		lazy(`^\s*(?:set -[euxo]+|esac$|if \[|for \w+ in .*; ?do$|while .*; ?do$|\w+=\$\(|\[\[? .* (?:=|==|!=|-\w\w) .* \]\]?(?: [|&]{2}.*)?$|\$\w+ = .*;$)`)},

	{stackTrace, "at ", lazy(at +
		` (?:async |new )*[\w.$<>\[\]#/@]+(?: \[as [\w.$]+\])? \([^()\s]*(?::\d+){1,2}\)`)},
	{stackTrace, "at ", lazy(at +
		` [\w.$<>/]+\((?:[\w$]+\.(?:java|kt|scala|groovy)(?::\d+)?|Native Method|Unknown Source)\)`)},
	{stackTrace, "at ", lazy(at + ` (?:async )?(?:file:/|node:|/|[A-Z]:\\)` + noFile + `*(?::\d+){1,2}`)},
	{stackTrace, "at ", lazy(`^\s*at [\w<>\x60]+(?:\.[\w<>\x60]+)+\([^()]*\)(?: in ` + noFile +
		`+:line \d+)?$`)},
	{stackTrace, ":line ", lazy(in + ` ` + noFile + `+:line \d+`)},
	{stackTrace, "Traceback", lazy(`(?:Exception )?Traceback \(most recent call last\):?`)},
	{stackTrace, "File ", lazy(gap + `File \\?"[^"\n]+", line \d+(?:, in [\w.<>]+)?`)},
	{stackTrace, "(0x|(...)|({|(?)",
		lazy(`^[\w./*()-]*\.[\w.*()-]+\((?:(?:0x[0-9a-f]+\??|\.\.\.|[{}]+|\?)(?:, )?)+\)$`)},
	{stackTrace, "goroutine ", lazy(`goroutine \d+ \[[^\]\n]*\]:?`)},
	{stackTrace, ".go:", lazy(gap + noFile + `+\.go:\d+(?: \+0x[0-9a-f]+)?`)},
	{stackTrace, ".php(", lazy(gap + `#\d+ ` + noFile + `+\.php\(\d+\)(?:: [^\s\\]+)?`)},
	{stackTrace, ".php on|.php:", lazy(in + ` ` + noFile + `+\.php(?: on line |:)\d+`)},
	{stackTrace, ".rb:", lazy(gap + `(?:from )?` + noFile + `+\.rb:\d+:in [\x60'"][^'"\n]*['"]?`)},
	{stackTrace, "panicked at ", lazy(`panicked at [^\n]*?\.rs:\d+:\d+:?`)},
	{stackTrace, "race:|RACE:", lazy(`(?i)\bstack (?:trace|backtrace):`)},

	{ownPath, "/workspace|/abl/|/home/agent", lazy(`/(?:workspace|abl/(?:in|out|bin)|home/agent)(?:/` +
		noFile + `*|\b)`)},
	{ownPath, ".abl/|node_modules/|_reports/",
		lazy(`(?:^|[^\w/.-])((?:\./)?(?:\.abl|node_modules|(?:builder|verifier)_reports)/` + noFile + `*)`)},
	{ownPath, "run.sh|failed_specs.md", lazy(`(?:^|[^\w/.-])((?:\./)?(?:run\.sh|failed_specs\.md)\b)`)},
	{ownPath, "src/|test|spec|phase|cases/|e2e/",
		lazy(`(?:^|[\s"'\x60(])((?:\./)?(?:src|tests?|specs?|phase\d+|cases|e2e)/[\w./@-]*\.` + sources +
			`\b(?::\d+)*)`)},
	{testName, "test.|spec.", lazy(`(?:^|[^\w/.-])([\w./-]*(?:_test|\.test|\.spec|_spec)\.` + sources +
		`\b(?:::?[\w:]+)*)`)},
	{testName, "test_", lazy(`(?:^|[^\w/.-])([\w./-]*\btest_\w+\.` + sources + `\b(?:::?[\w:]+)*)`)},
	{testName, ".C", lazy(`(?:^|[^\w/.-])([\w./-]*\bP\d+\.C\d+[\w-]*\.` + sources + `\b)`)},
	{testName, "test_|Test", lazy(`(?:^|[^\w"'=@/])(test_\w+\(\)|Test[A-Z]\w+/\w+)`)},
	{codePlace, ":", lazy(`(?:^|[^\w/.:@-])((?:\./|/)?[\w@-][\w./@-]*\.` + sources + `(?::\d+){1,2})\b`)},
}
