package failedspecs

import (
	"regexp"
	"strings"
	"sync"
)

// Kinds of what does not reach the Builder.
const (
	stackTrace = "a stack trace"
	codeLines  = "code"
	testOutput = "test output"
	codePlace  = "a place in the code"
	ownPath    = "a path of a workspace"
	testName   = "the name of a test"
)

var kinds = [...]string{stackTrace, codeLines, testOutput, codePlace, ownPath, testName}

// collapses find several marks of a kind in a row.
var collapses = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for _, kind := range kinds {
		mark := regexp.QuoteMeta(LeftOut(kind))
		all[kind] = regexp.MustCompile(mark + `(?:` + gap + mark + `)+`)
	}
	return all
})

// LeftOut stands in a field for what was taken out of it.
func LeftOut(what string) string { return "[left out: " + what + "]" }

// pattern finds something that does not reach the Builder. Where group 1 is
// there, it is what goes; what stands before it stays.
type pattern struct {
	kind string
	need string // one of these, divided by |, is in whatever the expression finds: to look for it is much quicker
	at   *regexp.Regexp
}

// may says whether the pattern can find anything in a text.
func (p pattern) may(text string) bool {
	for rest, more := p.need, true; more; {
		var one string
		if one, rest, more = strings.Cut(rest, "|"); strings.Contains(text, one) {
			return true
		}
	}
	return false
}

const (
	sources = `(?:js|mjs|cjs|jsx|ts|mts|tsx|py|go|rb|rs|java|kt|scala|php|cs|c|cc|cpp|h|hpp|swift|ex|exs|sh|bats|pl|lua)`
	gap     = `(?:\\[nrt]|\s)*` // white space, also as JSON spells it
	at      = `(?:(?:\\[nrt]|\s)+|\b)at`
	in      = `(?:(?:\\[nrt]|\s)+|\b)in`
	noFile  = `[^\s"'<>()\[\]\\,;]`
)

// line says that the whole line goes in which the pattern finds something.
func (p pattern) line() bool { return p.kind == testOutput || p.kind == codeLines }

// patterns are whole lines, then the lines of stack traces of common languages,
// alone or one after the other on a line, and parts of a line that name files of a
// workspace, places in them, or tests. They are made when they are first asked for:
// nearly every program of abl is started without a need for them.
var patterns = sync.OnceValue(func() []pattern {
	return []pattern{
		{testOutput, "ok|..|TAP|Bail|---|PASS|FAIL|ERROR|# |✓|✔|✗|✘|✕|✖", regexp.MustCompile(`^\s*(?:(?:not )?ok \d+(?: |$)|\d+\.\.\d+$|TAP version \d+|Bail out!|--- (?:FAIL|PASS|SKIP)[: ]|(?:FAIL|PASS|ok)\s+[\w./-]+\s+[\d.]+m?s$|(?:FAILED|PASSED|ERROR) \S+::|# (?:tests|pass|fail|skip|todo) \d+$|[✓✔✗✘✕✖] )`)},
		{codeLines, "#!|#include|<?php|package |using |import ", regexp.MustCompile(`^\s*(?:#!/|#include\s*[<"]|<\?php\b|package (?:main|\w+;)$|using [\w.]+;$|import [\w*{}, ]+ from ['"]|import ['"][^'"]+['"];?$|import [\w.]+(?: as \w+|;)$|from [\w.]+ import \w)`)},
		{codeLines, "const |let |var ", regexp.MustCompile(`^\s*(?:export )?(?:const|let|var) [\w{\[$][^=]*=`)},
		{codeLines, "function|def |class |func |fn |public |private |protected |static ", regexp.MustCompile(`^\s*(?:export )?(?:default )?(?:async )?(?:function\b[^(]*\([^)]*\) ?\{|def \w+\s*\(.*:|class \w+(?:\(.*\))?:$|class \w+ .*\{$|func (?:\(\w+ [^)]*\) )?\w+\(|(?:pub )?fn \w+.*[({]|(?:public|private|protected|static) .*[({;]$)`)},
		{codeLines, "if|for|while|switch|catch|else|finally|try|except|throw |raise |return |await |})", regexp.MustCompile(`^\s*(?:(?:if|for|while|switch|catch|\} else if) ?\(.*\) ?\{$|\} (?:else|finally|catch)\b.*\{$|if __name__|(?:try|finally|else):$|except(?: [A-Z]\w*(?: as \w+)?)?:$|throw new \w|raise \w+\(|return .*;$|await \w+[.(]|\}\)+;?$)`)},
		{codeLines, "assert|expect|require|it|test|describe|t.", regexp.MustCompile(`^\s*(?:self\.)?(?:assert\w*\s*\(|assert \S+.* (?:==|!=|not in) |(?:it|test|describe)\s*\(\s*['"\x60]|t\.(?:Errorf?|Fatalf?|Run|Log)\()|\bexpect\([^\n]*\)\s*\.\s*(?:not\s*\.\s*)?(?:to|be)\w*|\bassert\.\w+\(|\brequire\(['"]`)},
		{codeLines, "set -|esac|if [|for |while |$|[ ", regexp.MustCompile(`^\s*(?:set -[euxo]+|esac$|if \[|for \w+ in .*; ?do$|while .*; ?do$|\w+=\$\(|\[\[? .* (?:=|==|!=|-\w\w) .* \]\]?(?: [|&]{2}.*)?$|\$\w+ = .*;$)`)},

		{stackTrace, "at ", regexp.MustCompile(at + ` (?:async |new )*[\w.$<>\[\]#/@]+(?: \[as [\w.$]+\])? \([^()\s]*(?::\d+){1,2}\)`)},
		{stackTrace, "at ", regexp.MustCompile(at + ` [\w.$<>/]+\((?:[\w$]+\.(?:java|kt|scala|groovy)(?::\d+)?|Native Method|Unknown Source)\)`)},
		{stackTrace, "at ", regexp.MustCompile(at + ` (?:async )?(?:file:/|node:|/|[A-Z]:\\)` + noFile + `*(?::\d+){1,2}`)},
		{stackTrace, "at ", regexp.MustCompile(`^\s*at [\w<>\x60]+(?:\.[\w<>\x60]+)+\([^()]*\)(?: in ` + noFile + `+:line \d+)?$`)},
		{stackTrace, ":line ", regexp.MustCompile(in + ` ` + noFile + `+:line \d+`)},
		{stackTrace, "Traceback", regexp.MustCompile(`(?:Exception )?Traceback \(most recent call last\):?`)},
		{stackTrace, "File ", regexp.MustCompile(gap + `File \\?"[^"\n]+", line \d+(?:, in [\w.<>]+)?`)},
		{stackTrace, "(0x|(...)|({|(?)", regexp.MustCompile(`^[\w./*()-]*\.[\w.*()-]+\((?:(?:0x[0-9a-f]+\??|\.\.\.|[{}]+|\?)(?:, )?)+\)$`)},
		{stackTrace, "goroutine ", regexp.MustCompile(`goroutine \d+ \[[^\]\n]*\]:?`)},
		{stackTrace, ".go:", regexp.MustCompile(gap + noFile + `+\.go:\d+(?: \+0x[0-9a-f]+)?`)},
		{stackTrace, ".php(", regexp.MustCompile(gap + `#\d+ ` + noFile + `+\.php\(\d+\)(?:: [^\s\\]+)?`)},
		{stackTrace, ".php on|.php:", regexp.MustCompile(in + ` ` + noFile + `+\.php(?: on line |:)\d+`)},
		{stackTrace, ".rb:", regexp.MustCompile(gap + `(?:from )?` + noFile + `+\.rb:\d+:in [\x60'"][^'"\n]*['"]?`)},
		{stackTrace, "panicked at ", regexp.MustCompile(`panicked at [^\n]*?\.rs:\d+:\d+:?`)},
		{stackTrace, "race:|RACE:", regexp.MustCompile(`(?i)\bstack (?:trace|backtrace):`)},

		{ownPath, "/workspace|/abl/|/home/agent", regexp.MustCompile(`/(?:workspace|abl/(?:in|out|bin)|home/agent)(?:/` + noFile + `*|\b)`)},
		{ownPath, ".abl/|node_modules/|_reports/", regexp.MustCompile(`(?:^|[^\w/.-])((?:\./)?(?:\.abl|node_modules|(?:builder|verifier)_reports)/` + noFile + `*)`)},
		{ownPath, "run.sh|failed_specs.md", regexp.MustCompile(`(?:^|[^\w/.-])((?:\./)?(?:run\.sh|failed_specs\.md)\b)`)},
		{ownPath, "src/|test|spec|phase|cases/|e2e/", regexp.MustCompile(`(?:^|[\s"'\x60(])((?:\./)?(?:src|tests?|specs?|phase\d+|cases|e2e)/[\w./@-]*\.` + sources + `\b(?::\d+)*)`)},
		{testName, "test.|spec.", regexp.MustCompile(`(?:^|[^\w/.-])([\w./-]*(?:_test|\.test|\.spec|_spec)\.` + sources + `\b(?:::?[\w:]+)*)`)},
		{testName, "test_", regexp.MustCompile(`(?:^|[^\w/.-])([\w./-]*\btest_\w+\.` + sources + `\b(?:::?[\w:]+)*)`)},
		{testName, ".C", regexp.MustCompile(`(?:^|[^\w/.-])([\w./-]*\bP\d+\.C\d+[\w-]*\.` + sources + `\b)`)},
		{testName, "test_|Test", regexp.MustCompile(`(?:^|[^\w"'=@/])(test_\w+\(\)|Test[A-Z]\w+/\w+)`)},
		{codePlace, ":", regexp.MustCompile(`(?:^|[^\w/.:@-])((?:\./|/)?[\w@-][\w./@-]*\.` + sources + `(?::\d+){1,2})\b`)},
	}
})
