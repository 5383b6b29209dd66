package state

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"abl/internal/failedspecs"
)

// docs/state-format.md describes every field and status. The sample must set every field, because
// the other tests cannot check a field that is empty.
func TestDocsAndSampleAreComplete(t *testing.T) {
	doc, err := os.ReadFile("../../docs/state-format.md")
	if err != nil {
		t.Fatal(err)
	}
	f := full()
	p := f.Phases["2"]
	for _, v := range []any{*f, *p, p.HeldTo, p.Judged, p.History[0], *p.Outage, failedspecs.Entry{}} {
		for i := range reflect.TypeOf(v).NumField() {
			field := reflect.TypeOf(v).Field(i)
			if field.Anonymous { // the list has its fields
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("docs/state-format.md: got no description of %s.%s, want one", reflect.TypeOf(v), name)
			}
			if reflect.ValueOf(v).Field(i).IsZero() && field.Name != "Approved" && v != any(failedspecs.Entry{}) {
				t.Errorf("%s.%s of the sample: got the zero value, want another", reflect.TypeOf(v), field.Name)
			}
		}
	}
	for _, s := range Statuses() {
		if !strings.Contains(string(doc), "\n| `"+string(s)+"` |") {
			t.Errorf("docs/state-format.md: got no description of the status %s, want one", s)
		}
	}
}
