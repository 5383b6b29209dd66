package report

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"

	"abl/internal/audit"
)

// suites is the root of JUnit's XML. The elements follow the schema of Jenkins
// (docs/audit-record.md).
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	Suites  []suite  `xml:"testsuite"`
}

type suite struct {
	Name       string     `xml:"name,attr"`
	Package    string     `xml:"package,attr"`
	ID         int        `xml:"id,attr"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Hostname   string     `xml:"hostname,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Time       string     `xml:"time,attr,omitempty"`
	Properties []property `xml:"properties>property"`
	Cases      []testcase `xml:"testcase"`
	Out        string     `xml:"system-out"`
	Err        string     `xml:"system-err"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testcase struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Time    string   `xml:"time,attr,omitempty"` // in seconds, if measured
	Skipped *problem `xml:"skipped"`
	Error   *problem `xml:"error"`
	Failure *problem `xml:"failure"`
	Out     string   `xml:"system-out,omitempty"`
}

type problem struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit returns the newest iteration of each phase as JUnit XML: one suite per phase, one test case
// per contract, with its evidence. A contract without a proof never looks like a pass, and neither
// does a run that ended without a verdict.
func JUnit(runs ...Run) ([]byte, error) {
	all := suites{Name: "abl"}
	for id, r := range runs {
		s := suite{Name: "abl " + r.heading(line), Package: "abl", Hostname: "localhost", ID: id}
		if r.Record != nil {
			s.fill(*r.Record)
		}
		for _, f := range r.figures() {
			s.Properties = append(s.Properties, property{f.name, line(f.value)})
		}
		if r.Ended != nil {
			s.add(ended(r))
		}
		all.Suites = append(all.Suites, s)
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	e := xml.NewEncoder(&b)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return nil, fmt.Errorf("cannot encode the JUnit report: %w", err)
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// ended returns the test case of a run that ended without a verdict. With exit code 0 it had nothing
// to do, and the case is skipped.
func ended(r Run) testcase {
	c := testcase{Name: fmt.Sprintf("abl phase %d", r.Phase), Class: class(r.Phase)}
	p := &problem{Type: fmt.Sprintf("exit code %d", r.Ended.Code), Message: line(r.Ended.What)}
	if r.Ended.Code == 0 {
		c.Skipped = p
	} else {
		c.Error, p.Text = p, "the run ended without a verdict"
	}
	return c
}

func class(phase int) string { return fmt.Sprintf("phase%d", phase) }

// fill adds the content of a record.
func (s *suite) fill(r audit.Record) {
	ms := int64(0)
	for _, run := range r.Replays {
		ms += run.MS
	}
	s.Timestamp, s.Time = r.Decided.UTC().Format("2006-01-02T15:04:05"), seconds(ms)
	s.Properties = []property{
		{"verdict", line(r.Verdict)}, {"step", fmt.Sprint(r.Step)},
		{"round", fmt.Sprint(r.Round)}, {"iteration", fmt.Sprint(r.Iteration)},
	}
	names := map[string]int{}
	for _, f := range facts(r) {
		name := line(f.name)
		if names[name]++; names[name] > 1 { // readers keep only one value per name
			name += fmt.Sprintf(".%d", names[name])
		}
		s.Properties = append(s.Properties, property{name, line(f.value)})
	}
	for _, c := range r.Contracts {
		s.add(caseOf(c, r))
	}
	for _, e := range otherEntries(r) {
		p := &problem{Type: "failed", Message: line(e.Observed), Text: seen(e.Input, e.Observed, "")}
		s.add(testcase{Name: line(e.Spec), Class: class(r.Phase) + ".besides", Failure: p})
	}
	switch {
	case r.Verdict == audit.Pass && s.Failures+s.Errors == 0, r.Verdict == audit.Fail && s.Failures > 0:
		return
	}
	reasons := r.Missing
	if len(reasons) == 0 {
		reasons = []string{"the verdict is " + r.Verdict}
	}
	p := &problem{Type: line(r.Verdict), Message: line(reasons[0])}
	for _, why := range reasons {
		p.Text += line(why) + "\n"
	}
	s.add(testcase{Name: "a believable verdict", Class: class(r.Phase), Error: p})
}

func seconds(ms int64) string { return fmt.Sprintf("%d.%03d", ms/1000, ms%1000) }

// add counts a test case.
func (s *suite) add(c testcase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// caseOf returns the test case of one contract. A contract without a proof is an error. It is
// skipped if abl did not check it because the iteration failed elsewhere.
func caseOf(c audit.Contract, r audit.Record) testcase {
	var lines []string
	for _, l := range proof(c, r) {
		lines = append(lines, line(l))
	}
	t := testcase{Name: line(c.ID + " " + c.Says), Class: class(c.Phase), Out: strings.Join(lines, "\n")}
	for _, run := range r.Replays { // the times of several tests in one replay are unknown
		if run.Against == "app" && run.Tests == 1 && len(c.Runs) > 0 && t.Time == "" {
			t.Time = seconds(run.MS)
		}
	}
	p := &problem{Type: line(c.Is), Message: line(standingText(c, r)), Text: seen(c.Input, c.Observed, "")}
	switch {
	case c.Result == audit.Pass:
	case c.Result == audit.Fail:
		p.Type = cmp.Or(p.Type, "failed")
		t.Failure = p
	case skippedChecks(c, r), c.Is == "":
		p.Type, p.Text = cmp.Or(p.Type, "not tested"), ""
		t.Skipped = p
	default:
		t.Error = p
	}
	return t
}
