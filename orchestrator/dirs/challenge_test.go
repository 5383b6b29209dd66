package dirs

import (
	"fmt"
	"testing"
)

func TestLastMutated(t *testing.T) {
	for printed, want := range map[string]string{
		"":                            "{ 0 0 0 []} false",
		"{\"ready\":\":7071\"}\noops": "{ 0 0 0 []} false",
		"{\"ready\":\":7071\"}\n{\"mutation\":\"a\",\"applied\":1,\"answers\":2}\n":                                          "{a 1 2 0 []} true",
		"{\"mutation\":\"a\",\"applied\":1}\n{\"mutation\":\"a\",\"applied\":7,\"unread\":1,\"could\":[\"b\"]}\n{\"mutation": "{a 7 0 1 [b]} true",
	} {
		m, ok := LastMutated([]byte(printed))
		if got := fmt.Sprint(m, ok); got != want {
			t.Errorf("%q: %s, want %s", printed, got, want)
		}
	}
}
