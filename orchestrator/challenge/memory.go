package challenge

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How a write is forgotten: it is carried out, and the client gets the app's
// own answer to it. But what the app said before, on the address that was
// written to, on the one above it and on the one that was made, it seems to say
// from then on. All that a client ever gets is the app's own, only at the wrong
// time. A write that shows nowhere is not forgotten, and does not count.

const (
	askTime  = 5 * time.Second // for one question of the proxy's own
	maxStale = 64              // answers that are kept
	maxSaved = 256 << 10       // bytes of the body of one; longer ones are not kept
)

// saved is a whole answer.
type saved struct {
	status     int
	head, body []byte
}

func (s saved) like(o saved) bool { return s.status == o.status && bytes.Equal(s.body, o.body) }

// watched is an address with what it says before a write.
type watched struct {
	path string
	said saved
}

// stale holds what the app seems to say still, by address and by who asks.
type stale struct {
	mu      sync.Mutex
	answers map[string]saved
}

// asker is what an answer may depend on besides the address.
func asker(h http.Header) string {
	return "\n" + h.Get("Authorization") + "\n" + strings.Join(h.Values("Cookie"), ";")
}

// put keeps an answer; one that is there already is older, and stays.
func (s *stale) put(path string, by http.Header, said saved) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := path + asker(by)
	if _, known := s.answers[key]; known || len(s.answers) == maxStale {
		return
	}
	if s.answers == nil {
		s.answers = map[string]saved{}
	}
	s.answers[key] = said
}

func (s *stale) get(path string, by http.Header) (saved, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said, ok := s.answers[path+asker(by)]
	return said, ok
}

// drop forgets what a write to path may have changed: it would be too old.
func (s *stale) drop(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	below := func(a, b string) bool { return a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") }
	for key := range s.answers {
		if at, _, _ := strings.Cut(key, "\n"); below(at, path) || below(path, at) {
			delete(s.answers, key)
		}
	}
}

// remembered is what the app seems to say still.
func (c *conn) remembered(x *exchange) (saved, bool) {
	if c.Mutation.forget == nil || x.method != http.MethodGet || x.query {
		return saved{}, false
	}
	return c.stale.get(x.path, x.header)
}

// watch asks, before a write that will be forgotten, what is said around it.
func (c *conn) watch(x *exchange) {
	if c.Mutation.forget == nil || !c.Mutation.forget(x.method) {
		return
	}
	for _, p := range []string{x.path, path.Dir(x.path)} {
		if len(p) < 2 || p[0] != '/' {
			continue
		}
		if said, ok := c.ask(x, p); ok {
			x.before = append(x.before, watched{p, said})
		}
	}
}

// forget makes a write that was carried out seem forgotten.
func (c *conn) forget(x *exchange, a *answer, data []byte) {
	shows := false
	for _, w := range x.before {
		if now, ok := c.ask(x, w.path); ok && !now.like(w.said) {
			c.stale.put(w.path, x.header, w.said)
			shows = true
		}
	}
	if p := made(x.path, a.header.Get("Location"), data); p != "" && x.method == http.MethodPost {
		is, ok := c.ask(x, p)
		none, found := c.ask(x, sibling(p))
		if ok && found && is.status/100 == 2 && (none.status == http.StatusNotFound || none.status == http.StatusGone) {
			c.stale.put(p, x.header, none)
			shows = true
		}
	}
	if shows {
		c.applied()
	}
}

// made is the address of what a POST made, "" when it does not tell.
func made(at, location string, data []byte) string {
	if location != "" {
		base := &url.URL{Path: at}
		if u, err := base.Parse(location); err == nil {
			return u.EscapedPath()
		}
	}
	var body struct{ ID json.RawMessage }
	if json.Unmarshal(data, &body) != nil || len(body.ID) == 0 {
		return ""
	}
	var text string
	if json.Unmarshal(body.ID, &text) != nil {
		var n json.Number
		if json.Unmarshal(body.ID, &n) != nil {
			return ""
		}
		text = n.String()
	}
	return path.Join(at, url.PathEscape(text))
}

// sibling is an address beside another at which nothing is likely to be.
func sibling(p string) string {
	dir, last := path.Split(p)
	if n, err := strconv.Atoi(last); err == nil {
		return dir + strconv.Itoa(n+100003)
	}
	letters := []byte(last)
	for i := len(letters) - 1; i >= 0; i-- {
		switch b := letters[i]; {
		case b >= '0' && b <= '9':
			letters[i] = '0' + (b-'0'+1)%10
			return dir + string(letters)
		case b >= 'a' && b <= 'f':
			letters[i] = 'a' + (b-'a'+1)%6
			return dir + string(letters)
		}
	}
	return p + "0"
}
