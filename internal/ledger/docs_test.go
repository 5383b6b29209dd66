package ledger

import (
	"os"
	"strings"
	"testing"
)

func TestDocsNameEveryColumn(t *testing.T) {
	doc, err := os.ReadFile("../../docs/tokens-csv.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range append(strings.Split(Header, ","), Gateway, CLI, API, Nobody, Unknown) {
		if !strings.Contains(string(doc), "`"+want+"`") {
			t.Errorf("docs/tokens-csv.md: got a page without `%s`, want one that names it", want)
		}
	}
	if !strings.Contains(string(doc), "\n"+Header+"\n") {
		t.Errorf("docs/tokens-csv.md: got a page without the header, want %q", Header)
	}
}
