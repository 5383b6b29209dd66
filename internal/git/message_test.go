package git

import "testing"

func TestMessage(t *testing.T) {
	text, err := Message{Subject: "phase1/build/step-1", Call: "c1.1"}.text()
	if want := "phase1/build/step-1\n\nAbl-Call: c1.1\n"; text != want || err != nil || callOf(text) != "c1.1" {
		t.Errorf("text of the message: got %q with call %q, %v, want %q with call c1.1", text, callOf(text), err, want)
	}
	for _, bad := range []Message{{Call: "c"}, {Subject: "a\nb"}, {Subject: "a", Call: "v\nOther: w"}, {Subject: "a\x00"}} {
		if text, err := bad.text(); err == nil {
			t.Errorf("text of %+v: got %q, want an error", bad, text)
		}
	}
}

func TestCallOfForeignMessage(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "subject: not a trailer\n": "", "s\n\nbody: one\n\nAbl-Call: x\r\n\n": "x", "s\nAbl-Call: y": "y",
		"Abl-Call: z\n": "", "s\n\nAbl-Call: x\nSigned-off-by: p\n": "x",
	} {
		if got := callOf(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
