package witness

import (
	"net/http"
	"strings"
	"testing"
)

// sent returns an exchange with the request "METHOD target", header lines and, after an empty line,
// a body.
func sent(text string) Exchange {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	x := Exchange{SentHeader: http.Header{}, Sent: Body{Bytes: int64(len(body)), Begins: []byte(body)}}
	x.Method, x.Target, _ = strings.Cut(lines[0], " ")
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		x.SentHeader.Add(name, value)
	}
	return x
}

// A request is the contract's only if path, query, headers and body match.
func TestRequestIsComparedInFull(t *testing.T) {
	const login = `POST /login {"email": "ada@example.com", "password": "wrong"}`
	for _, c := range []struct {
		name, action, sent string
		want               bool
	}{
		{"the body as written", login, "POST /login\n\n" + `{"password": "wrong", "email": "ada@example.com"}`, true},
		{"another password", login, "POST /login\n\n" + `{"email": "ada@example.com", "password": "right"}`, false},
		{"a field too few", login, "POST /login\n\n" + `{"password": "wrong"}`, false},
		{"a field too many", login, "POST /login\n\n" + `{"email": "ada@example.com", "password": "wrong", "admin": true}`, false},
		{"no body", login, "POST /login", false},
		{"no JSON", login, "POST /login\n\nemail=ada@example.com", false},
		{"open values", `POST /links {"url": U}`, "POST /links\n\n" + `{"url": "https://example.org"}`, true},
		{"an open value that is not sent", `POST /links {"url": U}`, "POST /links\n\n{}", false},
		{"an empty document", "POST /notes {}", "POST /notes\n\n{}", true},
		{"no empty document", "POST /notes {}", "POST /notes\n\n" + `{"a": 1}`, false},
		{"fields that may follow", `POST /notes {"text": "a", …}`, "POST /notes\n\n" + `{"text": "a", "b": 1}`, true},
		{"a list in its order", "POST /sum [1, 2]", "POST /sum\n\n[1, 2.0]", true},
		{"a list in another order", "POST /sum [1, 2]", "POST /sum\n\n[2, 1]", false},
		{"a document that is not to be sent", `POST /notes with a body other than {"text": "x"}`, "POST /notes\n\n[]", true},
		{"a header", "GET /a (Accept: application/xml)", "GET /a\nAccept: application/xml;q=0.9", true},
		{"another header", "GET /a (Accept: application/xml)", "GET /a\nAccept: */*", false},
		{"a token of any value", "GET /me with Authorization: Bearer <token>", "GET /me\nAuthorization: Bearer abc", true},
		{"no token", "GET /me with Authorization: Bearer <token>", "GET /me", false},
		{"without a token", "GET /me without a token", "GET /me", true},
		{"without a token, and it has one", "GET /me without a token", "GET /me\nAuthorization: Bearer abc", false},
		{"without a cookie, and it has one", "GET /me without a session cookie", "GET /me\nCookie: a=b", false},
		{"unauthenticated, with a cookie", "GET /me unauthenticated", "GET /me\nCookie: a=b", false},
		{"without a key, and it has one", "GET /a without X-Api-Key", "GET /a\nX-Api-Key: 1", false},
		{"a surplus query key", "GET /a", "GET /a?nonce=7", false},
		{"a query that words speak of", "GET /a with a limit of 101", "GET /a?limit=101", true},
		{"a query with a blank", "GET /search?q=hello world", "GET /search?q=hello+world", true},
		{"a query that ends before the blank", "GET /search?q=hello world", "GET /search?q=hello", true},
		{"another query with a blank", "GET /search?q=hello world", "GET /search?q=hello+you", false},
		{"a query in quotes", `GET /search?q="big milk"`, "GET /search?q=big%20milk", true},
		{"a path with a blank", "GET /files/my file.txt", "GET /files/my%20file.txt", true},
		{"a path in code", "GET `/größe/ä b`", "GET /gr%C3%B6%C3%9Fe/%C3%A4%20b", true},
		{"an example of an id", "GET /notes/1", "GET /notes/4711", true},
		{"a UUID", "GET /a/550e8400-e29b-41d4-a716-446655440000", "GET /a/0b9d6a3e-6b0a-4b53-9f2b-0d7c0a3f3a11", true},
		{"a word for an id", "GET /notes/1", "GET /notes/all", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim, ok := ReadClaim("", c.action, "200")
			if !ok {
				t.Fatalf("claim of %s: got none, want one", c.action)
			}
			if got := claim.Asked(sent(c.sent)); got != c.want {
				t.Errorf("%s by %q: got %v, want %v; read %s", c.action, c.sent, got, c.want, claim)
			}
		})
	}
}

// A test may send another value where the response repeats it. Then the response must have it.
func TestEchoes(t *testing.T) {
	const action, result = `POST /greet {"name": "Bob", "loud": true}`, `200 {"name": "Bob", "greeting": "Hello, Bob!"}`
	claim, _ := ReadClaim("", action, result)
	for _, c := range []struct {
		name, sent, got string
		asked, fits     bool
	}{
		{"as written", `{"name": "Bob", "loud": true}`, `{"name": "Bob", "greeting": "Hello, Bob!"}`, true, true},
		{"another name", `{"name": "Ada", "loud": true}`, `{"name": "Ada", "greeting": "Hello, Ada!"}`, true, true},
		{"another name than was sent", `{"name": "Ada", "loud": true}`, `{"name": "Bob", "greeting": "Hello, Bob!"}`, true, false},
		{"half of it", `{"name": "Ada", "loud": true}`, `{"name": "Ada", "greeting": "Hello, Bob!"}`, true, false},
		{"another value that does not come again", `{"name": "Bob", "loud": false}`, `{"name": "Bob", "greeting": "Hello, Bob!"}`, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := sent("POST /greet\n\n" + c.sent)
			x.Status, x.Got = 200, Body{Bytes: int64(len(c.got)), Begins: []byte(c.got)}
			if asked, fits := claim.Asked(x), claim.Fits(x); asked != c.asked || fits != c.fits {
				t.Errorf("asked and fits: got %v and %v, want %v and %v", asked, fits, c.asked, c.fits)
			}
		})
	}
}

// Numbers and texts in quotes or code are compared literally.
func TestLiteralsAreCompared(t *testing.T) {
	for _, c := range []struct{ result, fits, other string }{
		{`200 {"state": "OK"}`, `{"state": "OK"}`, `{"state": "FAILED"}`},
		{`200 {"currency": "EUR"}`, `{"currency": "EUR"}`, `{"currency": "USD"}`},
		{`404 {"code": "NOT_FOUND"}`, `{"code": "NOT_FOUND"}`, `{"code": "OOPS"}`},
		{`200 {"error_id": "E_LIMIT"}`, `{"error_id": "E_LIMIT"}`, `{"error_id": "E_OTHER"}`},
		{"200 {\"version\": `1.0.0`}", `{"version": "1.0.0"}`, `{"version": "2.0.0"}`},
		{"200 with version `1.0.0`", `{"version": "1.0.0"}`, `{"version": "0.9.0"}`},
		{"200 with `total: 1`", `{"cart": {"total": 1}}`, `{"cart": {"total": 2}}`},
		{"200 with `total: 1`", "total: 1\n", "total: 2\n"},
		{`200 with total "1"`, "1", "2"},
		{"201 with state `created`", `{"state": "created"}`, `{"state": "pending"}`},
		{`200 {"created": true}`, `{"created": true}`, `{"created": false}`},
		{`200 {"createdAt": "2024-05-01"}`, `{"createdAt": "2026-11-27T10:00:00Z"}`, ""},
		{`200 {"due": "2024-05-01"}`, `{"due": "2024-05-01"}`, `{"due": "2024-05-02"}`},
		{`200 {"page": 1}`, `{"page": 1}`, `{"page": 2}`},
		{`200 {"price": "$5.00"}`, `{"price": "$5.00"}`, `{"price": "$6.00"}`},
		{`200 {"type": "text", "n": 1}`, `{"type": "text", "n": 1}`, `{"type": "image", "n": 1}`},
		{`200 {"name": "string", "age": "number"}`, `{"name": "Ada", "age": 7}`, `{"name": "Ada"}`},
		{`200 {"state": "open|closed"}`, `{"state": "closed"}`, `{"state": "lost"}`},
		{`200 {"greeting": "Hello <name>!"}`, `{"greeting": "Hello Ada!"}`, `{"greeting": "Bye Ada!"}`},
		{`200 {"id": {id}, "name": "x"}`, `{"id": 7, "name": "x"}`, `{"id": 7, "name": "y"}`},
		{"200 with body pong", "pong", "ping"},
		{"200 with the text Hello World", "<p>Hello <b>World</b></p>", "Hello"},
		{`200 "OK"`, "OK", "KO"},
		{"200 and the title \"Notes\"", "<title>Notes</title>", "<title>Links</title>"},
	} {
		t.Run(rowName(c.result), func(t *testing.T) {
			claim, ok := ReadClaim("", "GET /a", c.result)
			if !ok {
				t.Fatalf("claim of %s: got none, want one", c.result)
			}
			for body, want := range map[string]bool{c.fits: true, c.other: false} {
				x := Exchange{Method: "GET", Target: "/a", Status: claim.statuses[0].low, Got: Body{Bytes: int64(len(body)), Begins: []byte(body)}}
				if body == "" {
					continue
				}
				if misses := claim.Misses(x); (misses == "") != want {
					t.Errorf("misses of %s: got %q, want a fit: %t, with the claim %s", body, misses, want, claim)
				}
			}
		})
	}
}
