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

// eachExchange calls misses for each exchange of a file: below its contract, after "+" if it fits and
// "-" if not. misses returns why it does not fit.
func eachExchange(t *testing.T, path string, misses func(t *testing.T, action, result, exchange string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	contract := ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		text, exchange := strings.CutPrefix(line, "\t")
		if line == "" || line[0] == '#' {
			continue
		}
		if !exchange {
			contract = line
			continue
		}
		t.Run(rowName(contract), func(t *testing.T) {
			action, result, _ := strings.Cut(contract, " → ")
			why := misses(t, action, result, text[2:])
			if got, want := why == "", text[0] == '+'; got != want {
				t.Errorf("%s\n%s fits: got %v (%s), want %v", contract, text[2:], got, why, want)
			}
		})
	}
}

// An exchange fits a contract if it is what the contract says.
func TestExchangesFit(t *testing.T) {
	eachExchange(t, "testdata/exchanges.txt", func(t *testing.T, action, result, line string) string {
		claim, ok := ReadClaim("", action, result)
		x := exchangeOf(t, line)
		switch {
		case !ok:
			t.Fatalf("claim of %s → %s: got none, want one", action, result)
		case !claim.Asked(x):
			return "it is another request"
		}
		return claim.Misses(x)
	})
}

// A document without its values differs in what each test of it looks at: a loop over no items checks
// nothing.
func TestWithoutValues(t *testing.T) {
	for _, c := range []struct{ result, body, want string }{
		{"200 {}", "{}", `{"altered":true}`},
		{`200 {"a": 1}`, `{"a":1,"b":2}`, `{"b":2}`},
		{`200 [{"a", "b"}, …]`, `[{"a":1,"b":2,"c":3},{"a":4,"b":5}]`, `[{"c":3},{}]`},
		{"200 []", "[]", "[{}]"},
	} {
		t.Run(rowName(c.result), func(t *testing.T) {
			claim, _ := ReadClaim("", "GET /a", c.result)
			if _, got := claim.without(nil, []byte(c.body), nil); string(got) != c.want {
				t.Errorf("%s: got %s, want %s", c.body, got, c.want)
			}
		})
	}
}
