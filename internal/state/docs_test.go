package state

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"abl/internal/failedspecs"
)

// Every field and every status is described, and a field that is set in none of
// the samples would go unnoticed by the other tests.
func TestDocsAndSampleAreComplete(t *testing.T) {
	doc, err := os.ReadFile("../../docs/state-format.md")
	if err != nil {
		t.Fatal(err)
	}
	f := full()
	for _, v := range []any{*f, *f.Phases["2"], f.Phases["2"].HeldTo, f.Phases["2"].Judged, f.Phases["2"].History[0], *f.Phases["2"].Outage, failedspecs.Entry{}} {
		for i := range reflect.TypeOf(v).NumField() {
			field := reflect.TypeOf(v).Field(i)
			if field.Anonymous { // its fields stand in the list
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("docs/state-format.md does not describe %s.%s", reflect.TypeOf(v), name)
			}
			if reflect.ValueOf(v).Field(i).IsZero() && field.Name != "Approved" && v != any(failedspecs.Entry{}) {
				t.Errorf("the sample does not set %s.%s", reflect.TypeOf(v), field.Name)
			}
		}
	}
	for _, s := range Statuses() {
		if !strings.Contains(string(doc), "\n| `"+string(s)+"` |") {
			t.Errorf("docs/state-format.md does not describe the status %s", s)
		}
	}
}
