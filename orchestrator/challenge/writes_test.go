package challenge

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A write that is forgotten has the app's own answer, and does not show later;
// all else is as it was.
func TestForget(t *testing.T) {
	for _, c := range []struct {
		name    string
		say     []string
		want    string
		log     string // of the writes that reached the app
		applied int
	}{
		{"forget-create", []string{"POST /notes a", "GET /notes/1", "GET /notes", "GET /notes?all", "GET /notes as other", "PUT /notes/1 b", "GET /notes/1", "GET /notes"},
			`201 {"id":1,"text":"a"}
404 {"error":"no note 100004"}
200 []
200 [{"id":1,"text":"a"}]
200 "not yours"
200 {"id":1,"text":"b"}
200 {"id":1,"text":"b"}
200 [{"id":1,"text":"b"}]
`, "POST a, PUT /notes/1", 1},
		{"forget-create", []string{"POST /notes a", "POST /notes b", "GET /notes", "POST /notes", "DELETE /notes/9"},
			"201 {\"id\":1,\"text\":\"a\"}\n201 {\"id\":2,\"text\":\"b\"}\n200 []\n400 {\"error\":\"no text\"}\n404 {\"error\":\"no note 9\"}\n",
			"POST a, POST b, DELETE /notes/9", 2},
		{"forget-change", []string{"POST /notes a", "PUT /notes/1 b", "GET /notes/1", "GET /notes", "PUT /notes/1 c", "GET /notes/1", "PUT /notes/9 x", "DELETE /notes/1", "GET /notes/1"},
			`201 {"id":1,"text":"a"}
200 {"id":1,"text":"b"}
200 {"id":1,"text":"a"}
200 [{"id":1,"text":"a"}]
200 {"id":1,"text":"c"}
200 {"id":1,"text":"a"}
404 {"error":"no note 9"}
204 
404 {"error":"no note 1"}
`, "POST a, PUT /notes/1, PUT /notes/1, PUT /notes/9, DELETE /notes/1", 2},
		{"forget-change", []string{"POST /notes a", "PUT /notes/1 a", "GET /notes/1"}, // shows nowhere
			"201 {\"id\":1,\"text\":\"a\"}\n200 {\"id\":1,\"text\":\"a\"}\n200 {\"id\":1,\"text\":\"a\"}\n", "POST a, PUT /notes/1", 0},
		{"forget-remove", []string{"POST /notes a", "DELETE /notes/1", "GET /notes/1", "GET /notes", "DELETE /notes/1", "POST /notes b", "GET /notes"},
			`201 {"id":1,"text":"a"}
204 
200 {"id":1,"text":"a"}
200 [{"id":1,"text":"a"}]
404 {"error":"no note 1"}
201 {"id":2,"text":"b"}
200 [{"id":2,"text":"b"}]
`, "POST a, DELETE /notes/1, DELETE /notes/1, POST b", 1},
		{"create-twice", []string{"POST /notes a", "GET /notes", "POST /notes", "PUT /notes/1 b", "GET /notes"},
			`201 {"id":1,"text":"a"}
200 [{"id":1,"text":"a"},{"id":2,"text":"a"}]
400 {"error":"no text"}
200 {"id":1,"text":"b"}
200 [{"id":1,"text":"b"},{"id":2,"text":"a"}]
`, "POST a, POST a, PUT /notes/1", 1},
		{"create-twice", []string{"POST /notes once"}, "201 {\"id\":1,\"text\":\"once\"}\n", "POST once", 0},
		{"forget-create", []string{"POST /notes nowhere"}, "201 {\"id\":99}\n", "", 0},
		{Control, []string{"POST /notes a", "GET /notes/1", "DELETE /notes/1", "GET /notes"},
			"201 {\"id\":1,\"text\":\"a\"}\n200 {\"id\":1,\"text\":\"a\"}\n204 \n200 []\n", "POST a, DELETE /notes/1", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			app, to := newNotes(t)
			at, end := proxied(t, to, c.name)
			if diff := cmp.Diff(c.want, session(t, at, c.say...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			writes := slices.DeleteFunc(slices.Clone(app.log), func(s string) bool { return strings.HasPrefix(s, "GET") })
			if got := strings.Join(writes, ", "); got != c.log {
				t.Errorf("the app saw %s, want %s", got, c.log)
			}
			if r := end(); r.Applied != c.applied {
				t.Errorf("%+v, want %d", r, c.applied)
			}
		})
	}
}

// A write whose body is in chunks, and asked for first, is carried out twice; one
// too long to be kept is not.
func TestTwiceWithOddBodies(t *testing.T) {
	app, to := newNotes(t)
	at, end := proxied(t, to, "create-twice")
	const head = "POST /notes HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
	if got := say(t, at, head+"\r\n1\r\na\r\n1\r\nb\r\n0\r\n\r\n"); !strings.Contains(got, `"text":"ab"`) {
		t.Errorf("%q", got)
	}
	long := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", maxBody+1, strings.Repeat("x", maxBody+1))
	if got := say(t, at, head+"Connection: close\r\n\r\n"+long); !strings.Contains(got, "201 Created") {
		t.Errorf("%.100q", got)
	}
	if r := end(); r.Applied != 1 || len(app.texts) != 3 || app.texts[2] != "ab" {
		t.Errorf("%+v, %d notes", r, len(app.texts))
	}
}

// What is kept of answers is bounded, however much is written.
func TestStaleIsBounded(t *testing.T) {
	var s stale
	for i := range 2 * maxStale {
		s.put(fmt.Sprintf("/n/%d", i), nil, saved{status: i})
	}
	s.put("/n/1", nil, saved{status: 999})
	if said, _ := s.get("/n/1", nil); len(s.answers) != maxStale || said.status != 1 {
		t.Errorf("%d answers, the first is now %d", len(s.answers), said.status)
	}
	if _, ok := s.get("/n/1", http.Header{"Cookie": {"a"}}); ok {
		t.Error("another asker gets it too")
	}
	s.drop("/n/1/x")
	if _, ok := s.get("/n/1", nil); ok || len(s.answers) != maxStale-1 {
		t.Errorf("%d answers after a write below one", len(s.answers))
	}
	if s.drop("/n"); len(s.answers) != 0 {
		t.Errorf("%d answers after a write above all", len(s.answers))
	}
	var l limited
	_, _ = l.Write(make([]byte, maxSaved))
	if _, _ = l.Write([]byte("x")); !l.over || l.Len() != maxSaved {
		t.Errorf("kept %d", l.Len())
	}
}

// Many clients at once, each in its own connection, get each their own answer.
func TestMany(t *testing.T) {
	for _, name := range []string{Control, "value-text", "forget-create"} {
		_, to := newNotes(t)
		at, _ := proxied(t, to, name)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				conn, err := net.Dial("tcp", at)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				text := fmt.Sprintf("n%d-", i)
				for range 5 {
					fmt.Fprintf(conn, "POST /notes HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
				}
				closeWrite(conn)
				got, err := io.ReadAll(conn)
				if n := strings.Count(string(got), `"`+text); err != nil || n != 5 {
					t.Errorf("%s: %d answers, %v", name, n, err)
				}
			})
		}
		all.Wait()
	}
}
