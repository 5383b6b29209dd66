package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"abl/internal/testing/modelserver"
	"abl/roles/model"
)

// A server that checks the documented rules of the APIs accepts each provider's question.
func TestServed(t *testing.T) {
	script := func(prompt string) (modelserver.Script, error) {
		if strings.TrimSpace(prompt) != `"it"` {
			t.Errorf("got prompt %q, want the question", prompt)
		}
		return modelserver.Script{Final: "héllo", Usage: modelserver.Usage{Prompt: 7, Candidates: 3, Thoughts: 2}}, nil
	}
	s := httptest.NewServer(&modelserver.Server{Source: script, Aside: script, Log: io.Discard})
	defer s.Close()
	for name, tokens := range map[string]string{
		flash: "[7,3,null,2,null,12]", sonnet: "[7,5,0,null,null,12]", sol: "[7,3,0,2,null,12]", "chat": "[7,3,0,2,null,12]",
	} {
		t.Run(name, func(t *testing.T) {
			a, _, _, err := ask(t, name, s.URL, 0)
			if err != nil || a.Text != "héllo" || a.Finish != model.Whole || a.Model != name || a.Lost {
				t.Errorf("got %+v, %v; want héllo", a, err)
			}
			if got := numbers(a.Usage); got != tokens {
				t.Errorf("got tokens %s, want %s", got, tokens)
			}
		})
	}
	for _, trouble := range []modelserver.Trouble{modelserver.Unended, modelserver.Erring, modelserver.Jumbled, modelserver.Limited, modelserver.Declined, modelserver.Half, modelserver.Empty} {
		for name := range map[string]bool{flash: true, sonnet: true, sol: true, "chat": true} {
			t.Run(name+" "+string(trouble), func(t *testing.T) {
				s := httptest.NewServer(trouble)
				defer s.Close()
				want := map[modelserver.Trouble]string{modelserver.Limited: "cut", modelserver.Declined: "blocked"}[trouble]
				a, _, _, err := ask(t, name, s.URL, 0)
				got := string(a.Finish)
				if e, is := err.(*model.Error); want == "" && (!is || !e.Kind.Transient()) || want == "cut" && err != nil || got != want {
					t.Errorf("got %q, %v; want %q, or a transient error", got, err, want)
				}
			})
		}
	}
}

// An answer of the Chat API is complete with its last event, even if the server leaves the stream open.
func TestChatEndsWithItsLastEvent(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, chatOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	conf := to(t, "chat", s.URL)
	conf.Patience = time.Hour
	c, err := model.New("chat", conf)
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Ask(t.Context(), "x", unkept)
	if err != nil || a.Text != "hello" || a.Finish != model.Whole {
		t.Errorf("got %+v, %v; want hello, %s", a, err, model.Whole)
	}
}
