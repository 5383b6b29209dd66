package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"abl/cmd/internal/exit"
	"abl/orchestrator"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
)

// phaseNumber reads N, or PHASE=N as earlier tools had it.
func phaseNumber(arg string) (int, error) {
	text := arg
	if key, value, ok := strings.Cut(arg, "="); ok && strings.EqualFold(key, "phase") {
		text = value
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fault(exit.Usage, fmt.Errorf("cannot run phase %q: a phase is a number from 1 on", arg), "abl phase 1")
	}
	return n, nil
}

// admit says whether phase n may run, before anything is started.
func admit(f *state.File, specs spec.Set, n int, again bool) (orchestrator.Admission, error) {
	if stops := specs.Check(n); len(stops) > 0 {
		p := stops[0]
		return orchestrator.Admission{}, fault(exit.Usage, fmt.Errorf("cannot run phase %d: %s", n, p), p.Hint)
	}
	a, err := orchestrator.Admit(f, specs, n, again)
	var notYet orchestrator.NotYet
	var frozen orchestrator.Frozen
	switch {
	case errors.As(err, &notYet):
		return a, fault(exit.Usage, err, fmt.Sprintf("run abl phase %d first", notYet.First))
	case errors.As(err, &frozen):
		return a, fault(exit.Usage, err, fmt.Sprintf("put the earlier text back and add what is new at its end, or in the spec of a later phase (.abl/specs/phase%d.md)", frozen.Phase))
	}
	return a, err
}
