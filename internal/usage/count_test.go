package usage

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func n(v int64) *int64 { return &v }

func TestUnknownIsNotZero(t *testing.T) {
	for _, c := range []struct {
		name        string
		count       Count
		known, used bool
		all         int64
		complete    bool
	}{
		{"nothing known", Count{}, false, false, 0, false},
		{"none used", None(), true, false, 0, true},
		{"a total", Count{Total: n(5), Input: n(1)}, true, true, 5, true},
		{"parts", Count{Input: n(1), Candidates: n(2), Thoughts: n(3), Cached: n(9)}, true, true, 6, true},
		{"a part", Count{Input: n(1)}, true, true, 1, false},
		{"more than fits", Count{Input: n(math.MaxInt64), Candidates: n(1)}, true, true, math.MaxInt64, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			all, complete := c.count.All()
			if all != c.all || complete != c.complete || c.count.Known() != c.known || c.count.Used() != c.used {
				t.Errorf("got all %d, complete %v, known %v, used %v, want %d, %v, %v, %v",
					all, complete, c.count.Known(), c.count.Used(), c.all, c.complete, c.known, c.used)
			}
		})
	}
}

func TestAdd(t *testing.T) {
	got := Count{Input: n(1), Total: n(1 << 62)}.Add(Count{Total: n(1 << 62), Tool: n(0), Written: n(4)})
	want := Count{Input: n(1), Tool: n(0), Total: n(math.MaxInt64), Written: n(4)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestThoughtsAndNonsense(t *testing.T) {
	before := Count{Candidates: n(10), Thoughts: n(4), Tool: n(-1)}
	want := Count{Candidates: n(6), Thoughts: n(4)}
	if diff := cmp.Diff(want, before.WithoutThoughts().Sane()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if *before.Candidates != 10 || *before.Tool != -1 {
		t.Errorf("original count: got candidates %d and tool %d, want 10 and -1", *before.Candidates, *before.Tool)
	}
}
