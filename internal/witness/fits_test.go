package witness

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
)

// exchangeOf reads "METHOD target, Header: value | body ⇒ status⟩ Header: value | body".
func exchangeOf(t *testing.T, line string) Exchange {
	t.Helper()
	request, response, ok := strings.Cut(line, " ⇒ ")
	if !ok {
		t.Fatalf("%q has no response", line)
	}
	request, body, _ := strings.Cut(request, " | ")
	x := sent(strings.ReplaceAll(request, ", ", "\n") + "\n\n" + body)
	head, got, _ := strings.Cut(response, " | ")
	x.Header = http.Header{}
	for i, part := range strings.Split(head, "⟩ ") {
		if name, value, ok := strings.Cut(part, ": "); ok && i > 0 {
			x.Header.Add(name, value)
			continue
		}
		status, err := strconv.Atoi(part)
		if err != nil {
			t.Fatalf("%q has no status", line)
		}
		x.Status = status
	}
	got = strings.ReplaceAll(got, `\n`, "\n")
	x.Got = Body{Bytes: int64(len(got)), Begins: []byte(got)}
	return x
}

// testdata/exchanges.txt has a contract per line. Below it are exchanges: "+" fits, "-" does not.
func TestExchangesFit(t *testing.T) {
	data, err := os.ReadFile("testdata/exchanges.txt")
	if err != nil {
		t.Fatal(err)
	}
	var claim Claim
	contract := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		text, exchange := strings.CutPrefix(line, "\t")
		if !exchange {
			action, result, _ := strings.Cut(line, " → ")
			contract = line
			var ok bool
			if claim, ok = ReadClaim("", action, result); !ok {
				t.Errorf("%s: not checkable", line)
			}
			continue
		}
		t.Run(rowName(contract), func(t *testing.T) {
			want, x := text[0] == '+', exchangeOf(t, text[2:])
			if got := claim.Fits(x); got != want {
				t.Errorf("%s\nfits %s: got %v, want %v (lacks %q); read %s", contract, text[2:], got, want, claim.Misses(x), claim)
			}
		})
	}
}
