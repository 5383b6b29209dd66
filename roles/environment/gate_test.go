package environment

import (
	"fmt"
	"strings"
	"testing"

	"abl/internal/gateway"
	"abl/internal/gateway/sidecar"
	"abl/internal/tokens"
)

func TestTraffic(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	asked := func(model string, status int, u *tokens.Count) gateway.Entry {
		return gateway.Entry{Kind: gateway.Requested, Call: "c", Req: &gateway.Request{Model: model, Status: status}, Usage: u}
	}
	told := &tokens.Count{Input: n(10), Candidates: n(2), Total: n(12)}
	over := gateway.Entry{Kind: gateway.Requested, Call: "c", Reason: "reached", Req: &gateway.Request{Refused: true, Over: true, Status: 403}}
	for _, c := range []struct {
		name string
		log  sidecar.Log
		want string
	}{
		{"two answers", sidecar.Log{Entries: []gateway.Entry{asked("m", 200, told), asked("m", 200, told)}}, "m 24; 2 requests"},
		{"an answer without usage", sidecar.Log{Entries: []gateway.Entry{asked("m", 200, told), asked("m", 200, &tokens.Count{})}},
			"m 12, m unknown; 2 requests; the provider told no whole usage for 1 of 2 answers of m"},
		{"only such", sidecar.Log{Entries: []gateway.Entry{asked("m", 200, &tokens.Count{})}}, "m unknown; 1 requests; the provider told no whole usage for 1 of 1 answers of m"},
		{"nothing asked", sidecar.Log{Entries: []gateway.Entry{{Kind: gateway.Ready}}}, " 0; 0 requests"},
		{"another call's", sidecar.Log{Entries: []gateway.Entry{{Kind: gateway.Requested, Call: "d", Req: &gateway.Request{}, Usage: told}}}, " 0; 0 requests"},
		{"lines lost", sidecar.Log{Entries: []gateway.Entry{asked("m", 200, told)}, Lost: 3}, "m 12,  unknown; 1 requests; the gateway's log lacks at least 3 lines: the usage is a lower bound"},
		{"over the budget", sidecar.Log{Entries: []gateway.Entry{asked("m", 200, told), over}}, "m 12; 1 requests; over: reached"},
	} {
		got := trafficOf(c.log, "c")
		var models []string
		for _, u := range got.Usage {
			text := u.Model + " unknown"
			if u.Total != nil {
				text = fmt.Sprint(u.Model, " ", *u.Total)
			}
			models = append(models, text)
		}
		text := fmt.Sprintf("%s; %d requests", strings.Join(models, ", "), got.Requests)
		for _, note := range got.Notes {
			text += "; " + note
		}
		if got.Over != "" {
			text += "; over: " + got.Over
		}
		if text != c.want {
			t.Errorf("%s: %s, want %s", c.name, text, c.want)
		}
	}
}
