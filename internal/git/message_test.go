package git

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMessage(t *testing.T) {
	text, err := formatMessage("phase1/build/step-1", [][2]string{{"Abl-Call", "c1.1"}, {"Abl-Role", "builder: x"}})
	if err != nil {
		t.Fatal(err)
	}
	subject, trailers := parseMessage(text)
	want := map[string]string{"Abl-Call": "c1.1", "Abl-Role": "builder: x"}
	if subject != "phase1/build/step-1" || !cmp.Equal(trailers, want) {
		t.Errorf("%q %v", subject, trailers)
	}
	for _, bad := range []struct{ subject, key, value string }{
		{"", "K", "v"}, {"a\nb", "K", "v"}, {"a", "K y", "v"}, {"a", "", "v"}, {"a", "K", "v\nOther: w"}, {"a\x00", "K", "v"},
	} {
		if text, err := formatMessage(bad.subject, [][2]string{{bad.key, bad.value}}); err == nil {
			t.Errorf("%+v gives %q", bad, text)
		}
	}
}

func TestParseForeignMessage(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                    {},
		"subject: not a trailer\n":            {},
		"s\n\nbody: one\n\nAbl-Call: x\r\n\n": {"Abl-Call": "x"},
		"s\nAbl-Call: y\n":                    {"Abl-Call": "y"},
	} {
		if _, got := parseMessage(text); !cmp.Equal(got, want) {
			t.Errorf("%q: %v", text, got)
		}
	}
}
