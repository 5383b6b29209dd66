package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"abl/roles"
)

// differences are where the gateways and the agents counted differently.
type differences struct {
	Compared int          `json:"compared"` // calls that both counted whole
	Differ   int          `json:"differ"`
	Counted  int64        `json:"counted"` // tokens of the compared calls, by the gateways
	Claimed  int64        `json:"claimed"` // by the agents
	Calls    []difference `json:"calls"`   // the first of those that differ
}

type difference struct {
	Call    string `json:"call"`
	Counted int64  `json:"counted"`
	Claimed int64  `json:"claimed"`
}

// mostDifferences is how many calls are named.
const mostDifferences = 20

// differences looks at every call's outcome, one at a time; nil when no call was
// counted twice. An outcome that cannot be read has nothing to compare.
func (s *session) differences() (*differences, error) {
	entries, err := os.ReadDir(s.project.Calls())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	d := &differences{Calls: []difference{}}
	for _, e := range entries {
		if _, ok := parseKey(e.Name()); !ok || !e.IsDir() {
			continue
		}
		if o, ended, err := (roles.Record{Dir: s.project.Call(e.Name())}).Outcome(); err == nil && ended {
			d.add(e.Name(), o)
		}
	}
	if d.Compared == 0 {
		return nil, nil
	}
	return d, nil
}

func (d *differences) add(call string, o roles.Outcome) {
	counted, claimed, both := o.Counts()
	if !both {
		return
	}
	d.Compared++
	d.Counted += counted
	d.Claimed += claimed
	if counted == claimed {
		return
	}
	d.Differ++
	if len(d.Calls) < mostDifferences {
		d.Calls = append(d.Calls, difference{call, counted, claimed})
	}
}

func (d *differences) text() string {
	if d.Differ == 0 {
		return fmt.Sprintf("the gateway and the agents counted the same in all %d calls that both counted", d.Compared)
	}
	text := fmt.Sprintf("the gateway and the agents counted differently in %d of %d calls, %d and %d tokens; the gateway's count:", d.Differ, d.Compared, d.Counted, d.Claimed)
	for _, c := range d.Calls {
		text += fmt.Sprintf(" %s %d and %d;", c.Call, c.Counted, c.Claimed)
	}
	return text[:len(text)-1]
}
