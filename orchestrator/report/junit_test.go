package report

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"abl/internal/audit"
)

// elements are the elements of the schema of Jenkins: for each its parents, its attributes, and the
// required ones.
var elements = map[string]struct{ in, may, must string }{
	"testsuites": {"", "name time tests failures errors", ""},
	"testsuite":  {"testsuites testsuite", "name tests failures errors group time skipped timestamp hostname id package file log url", "name tests failures errors"},
	"properties": {"testsuite", "", ""},
	"property":   {"properties", "name value", "name value"},
	"testcase":   {"testsuite", "name time classname group", "name"},
	"skipped":    {"testcase", "type message", ""},
	"error":      {"testcase", "type message", ""},
	"failure":    {"testcase", "type message", ""},
	"system-out": {"testsuite testcase", "", ""},
	"system-err": {"testsuite testcase", "", ""},
}

// forms are the patterns of attributes; if schemas differ, the stricter one.
var forms = map[string]*regexp.Regexp{
	"time":      regexp.MustCompile(`^\d+\.\d{3}$`),
	"timestamp": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`),
	"tests":     regexp.MustCompile(`^\d+$`),
	"id":        regexp.MustCompile(`^\d+$`),
}

// structure returns the violations of the schema in a document.
func structure(doc []byte) (wrong []string) {
	d := xml.NewDecoder(strings.NewReader(string(doc)))
	var at []string
	counts, named := map[string]int{}, map[string]bool{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return append(wrong, err.Error())
		}
		switch e := token.(type) {
		case xml.StartElement:
			wrong = append(wrong, element(e, at)...)
			at = append(at, e.Name.Local)
			counts[e.Name.Local]++
			if e.Name.Local == "testsuite" {
				named = map[string]bool{}
			} else if e.Name.Local == "property" && named[e.Attr[0].Value] {
				wrong = append(wrong, "two properties "+e.Attr[0].Value)
			} else if e.Name.Local == "property" {
				named[e.Attr[0].Value] = true
			}
			if e.Name.Local == "testsuite" {
				for _, a := range e.Attr {
					if n, err := strconv.Atoi(a.Value); err == nil && slices.Contains([]string{"tests", "failures", "errors", "skipped"}, a.Name.Local) {
						counts["said "+a.Name.Local] += n
					}
				}
			}
		case xml.EndElement:
			at = at[:len(at)-1]
		case xml.CharData:
			text := string(e)
			if strings.ContainsFunc(text, steers) {
				wrong = append(wrong, fmt.Sprintf("%v holds %q", at, text))
			}
			if len(at) > 0 && !slices.Contains([]string{"failure", "error", "skipped", "system-out", "system-err"}, at[len(at)-1]) && strings.TrimSpace(text) != "" {
				wrong = append(wrong, fmt.Sprintf("%v holds text: %q", at, text))
			}
		}
	}
	for said, what := range map[string]string{"said tests": "testcase", "said failures": "failure", "said errors": "error", "said skipped": "skipped"} {
		if counts[said] != counts[what] {
			wrong = append(wrong, fmt.Sprintf("%s %d, and there are %d", said, counts[said], counts[what]))
		}
	}
	return wrong
}

func element(e xml.StartElement, at []string) (wrong []string) {
	name := e.Name.Local
	rule, ok := elements[name]
	parent := ""
	if len(at) > 0 {
		parent = at[len(at)-1]
	}
	if !ok || rule.in == "" && parent != "" || rule.in != "" && !slices.Contains(strings.Fields(rule.in), parent) {
		return []string{fmt.Sprintf("%s stands in %q", name, parent)}
	}
	must := strings.Fields(rule.must)
	for _, a := range e.Attr {
		if !slices.Contains(strings.Fields(rule.may), a.Name.Local) {
			wrong = append(wrong, fmt.Sprintf("%s has an attribute %s", name, a.Name.Local))
		}
		if form := forms[a.Name.Local]; form != nil && !form.MatchString(a.Value) {
			wrong = append(wrong, fmt.Sprintf("%s: %s is %q", name, a.Name.Local, a.Value))
		}
		if strings.ContainsFunc(a.Value, steers) || strings.Contains(a.Value, "\n") {
			wrong = append(wrong, fmt.Sprintf("%s: %s is %q", name, a.Name.Local, a.Value))
		}
		must = slices.DeleteFunc(must, func(m string) bool { return m == a.Name.Local })
	}
	if len(must) > 0 {
		wrong = append(wrong, fmt.Sprintf("%s lacks %v", name, must))
	}
	return wrong
}

// steers reports whether a character may act as more than text.
func steers(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == 0x7f }

// The check of the structure finds errors.
func TestStructureRefuses(t *testing.T) {
	for _, doc := range []string{
		"<testsuites><testcase name='a'/></testsuites>", "<testsuite/>", "<testsuites><testsuite name='a' tests='0' failures='0'/></testsuites>",
		"<testsuites><testsuite name='a' tests='1' failures='0' errors='0'/></testsuites>", "<testsuites><testsuite name='a' tests='0' failures='0' errors='0' color='x'/></testsuites>",
		"<testsuites><testsuite name='a' tests='0' failures='0' errors='0' time='soon'/></testsuites>", "<testsuites>", "<testsuites>text</testsuites>", "<other/>",
	} {
		if len(structure([]byte(doc))) == 0 {
			t.Errorf("structure of %s: got no error, want one", doc)
		}
	}
}

// Each phase is a suite with its own numbers, and measured times are included.
func TestJUnitOfSeveralPhases(t *testing.T) {
	good := contract(1, "P1.C1", "a → b", audit.Pass, audit.ByReplay, "verified")
	good.Runs = []string{"ok"}
	one := sample("pass", "passed", good)
	one.Replays = []audit.Replay{{Name: "app-1", Against: "app", Tests: 1, OK: 1, MS: 1500}}
	data, err := JUnit(Run{Phase: 1, Record: &one}, Run{Phase: 2, Ended: &Ended{Code: 5, What: "the agent failed"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range structure(data) {
		t.Errorf("structure of JUnit: got %s, want no error", wrong)
	}
	for _, want := range []string{`id="0"`, `id="1"`, `name="abl phase 2" `, `tests="1" failures="0" errors="1"`, `classname="phase1" time="1.500">`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("JUnit: got\n%s\nwant %s in it", data, want)
		}
	}
}

// Unverified contracts never look like passed ones.
func TestJUnitIsGreenOnlyForAPass(t *testing.T) {
	for _, v := range []string{"pass", "fail", "unverified"} {
		for _, result := range []string{audit.Pass, audit.Fail, audit.Unknown} {
			for _, is := range []string{"", "verified", "weak", "failed", "flaky", "not reproduced", "disputed", "vacuous", "not witnessed", "not read", "missing", "ok so far", "untried"} {
				r := sample(v, "", contract(1, "P1.C1", "a → b", result, "", is))
				data, err := JUnit(Run{Phase: 1, Record: &r})
				if err != nil {
					t.Fatal(err)
				}
				red := strings.Contains(string(data), "<failure") || strings.Contains(string(data), "<error")
				if green := v == "pass" && result == audit.Pass; green == red && !(v == "pass" && result == audit.Unknown && is == "") {
					t.Errorf("red for verdict %s, contract %s (%s): got %t, want %t", v, result, is, red, !green)
				}
				for _, wrong := range structure(data) {
					t.Errorf("structure for verdict %s, contract %s (%s): got %s, want no error", v, result, is, wrong)
				}
			}
		}
	}
	data, err := JUnit(Run{Phase: 1, Ended: &Ended{Code: 2, What: "a spec error"}})
	if err != nil || !strings.Contains(string(data), `errors="1"`) {
		t.Errorf("JUnit of a spec error: got %s, %v, want one error in it", data, err)
	}
}
