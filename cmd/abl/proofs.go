package main

import (
	"errors"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/roles"
)

// proofs are the proofs that a call's record keeps: of its own box, and of the
// app's that was up for it.
func (c callLog) proofs() (all []roles.Boundary, err error) {
	rec := roles.Record{Dir: c.dir}
	own, ok, err := rec.Boundary()
	if ok {
		all = append(all, own)
	}
	app, ok, aerr := rec.AppBoundary()
	if ok {
		all = append(all, app)
	}
	return all, errors.Join(err, aerr)
}

// noteWeak says of each phase how many of its calls ran on networks that were
// not proven.
func (s *session) noteWeak(all *standings) error {
	calls, err := s.calls()
	if err != nil {
		return err
	}
	weak := map[int]int{}
	for _, c := range calls {
		proofs, err := c.proofs()
		if err != nil {
			return err
		}
		for _, p := range proofs {
			if p.Weak != "" {
				weak[c.phase]++
				break
			}
		}
	}
	for i, p := range all.Phases {
		if n := weak[p.Phase]; n > 0 {
			all.Phases[i].Notes = append(p.Notes, fmt.Sprintf("weak network: %s on networks that were not proven, as --%s allowed", ranOn(n), cli.WeakFlag))
		}
	}
	return nil
}

func ranOn(n int) string {
	if n == 1 {
		return "1 call ran"
	}
	return fmt.Sprintf("%d calls ran", n)
}
