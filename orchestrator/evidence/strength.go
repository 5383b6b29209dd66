package evidence

import "abl/orchestrator/tap"

// Strength is how many small changes of the app's answers the tests notice.
type Strength struct {
	Noticed int      `json:"noticed"`
	Applied int      `json:"applied"` // mutants that changed an answer at least once; the others count for nothing
	Idle    []string `json:"idle,omitempty"`
	Missed  []string `json:"missed,omitempty"` // applied, and every contract stayed ok
}

// Share is from 0 to 1; ok is false when no mutant changed an answer.
func (s Strength) Share() (share float64, ok bool) {
	if s.Applied == 0 {
		return 0, false
	}
	return float64(s.Noticed) / float64(s.Applied), true
}

// strength counts the mutants that at least one contract notices, and tells each
// contract which: those under which it is not ok, which otherwise it always is,
// through the proxy without a change too.
func strength(standings []Standing, suites []Suite) *Strength {
	var total *Strength
	for _, s := range suites {
		if s.Control != nil && total == nil {
			total = &Strength{} // measured, though there may be nothing to change
		}
		for _, m := range s.Mutants {
			if total == nil {
				total = &Strength{}
			}
			if m.Applied == 0 {
				total.Idle = append(total.Idle, m.Name)
				continue
			}
			total.Applied++
			if s.noticed(m, standings) {
				total.Noticed++
			} else {
				total.Missed = append(total.Missed, m.Name)
			}
		}
	}
	return total
}

func (s Suite) noticed(m Mutant, standings []Standing) (noticed bool) {
	for i := range standings {
		st := &standings[i]
		steady := st.Suite == s.Name && st.Is.Proven()
		if s.Control != nil {
			steady = steady && s.Control.Gone == "" && s.Control.TAP.Of(st.Contract).Status == tap.OK
		}
		if steady && m.Run.Gone == "" && m.Run.TAP.Of(st.Contract).Status != tap.OK {
			st.Notices, noticed = append(st.Notices, m.Name), true
		}
	}
	return noticed
}
