package trial

import (
	"math"
	"strings"
	"testing"
)

func near(a, b float64) bool { return math.Abs(a-b) < 5e-4 }

// The figures are those of the literature on these intervals.
func TestWilson(t *testing.T) {
	for _, c := range []struct {
		good, n   int
		low, high float64
	}{{0, 10, 0, 0.2775}, {10, 10, 0.7225, 1}, {81, 263, 0.2553, 0.3662}, {15, 148, 0.0624, 0.1605}, {0, 0, 0, 1}, {1, 1, 0.2065, 1}} {
		if got := Wilson(c.good, c.n); !near(got.Low, c.low) || !near(got.High, c.high) {
			t.Errorf("%d of %d: %+v, want %v to %v", c.good, c.n, got, c.low, c.high)
		}
	}
}

func TestNewcombe(t *testing.T) {
	if got := Newcombe(Wilson(56, 70), Wilson(48, 80)); !near(got.Value, 0.2) || !near(got.Low, 0.0524) || !near(got.High, 0.3339) {
		t.Errorf("%+v", got)
	}
	if got := Newcombe(Wilson(10, 10), Wilson(0, 20)); !near(got.Low, 0.6791) || got.High != 1 {
		t.Errorf("%+v", got)
	}
}

func TestBootstrap(t *testing.T) {
	if got, ok := Bootstrap([]float64{1, 1, 1}, []float64{3, 3}); !ok || !near(got.Value, -2) || !near(got.Low, -2) || !near(got.High, -2) {
		t.Errorf("%+v", got)
	}
	got, _ := Bootstrap([]float64{1, 2, 3, 2, 1}, []float64{2, 1, 3, 1, 2})
	if again, _ := Bootstrap([]float64{1, 2, 3, 2, 1}, []float64{2, 1, 3, 1, 2}); again != got {
		t.Error("two runs differ")
	}
	if got.Low > -0.2 || got.High < 0.2 || !near(got.Value, 0) {
		t.Errorf("%+v", got)
	}
	if _, ok := Bootstrap(nil, []float64{1}); ok {
		t.Error("nothing has a mean")
	}
}

func TestCompare(t *testing.T) {
	n, usd := int64(100), 0.5
	tried := func(with, ok bool, attempts, times int, tokens *int64) (all []Tried) {
		for range times {
			all = append(all, Tried{With: with, OK: ok, Attempts: attempts, Tokens: tokens, CostUSD: &usd})
		}
		return all
	}
	for _, c := range []struct {
		name    string
		all     []Tried
		verdict Verdict
	}{
		{"all the better", append(tried(true, true, 1, 6, &n), tried(false, false, 3, 6, &n)...), Pays},
		{"all the worse", append(tried(false, true, 1, 6, &n), tried(true, false, 3, 6, &n)...), Hurts},
		{"quicker", append(tried(true, true, 1, 4, &n), tried(false, true, 2, 4, &n)...), Pays},
		{"the same", append(tried(true, true, 1, 4, &n), tried(false, true, 1, 4, &n)...), Unclear},
		{"one each", append(tried(true, true, 1, 1, &n), tried(false, false, 1, 1, &n)...), Unclear},
		{"nothing", nil, Unclear},
	} {
		if got := Compare(c.all); got.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
	c := Compare(append(tried(true, true, 1, 2, &n), append(tried(false, true, 1, 2, nil), tried(false, true, 1, 1, &n)...)...))
	if c.Tokens != nil || c.Without.Tokens != nil || c.With.Tokens == nil || c.CostUSD == nil || *c.With.Tokens != 100 {
		t.Errorf("unknown tokens: %+v", c)
	}
}

func TestParse(t *testing.T) {
	tasks, err := Parse("t.yaml", []byte("version: 1\ntasks:\n- task: add\n  expect: \"42\"\n- {task: greet}\n"))
	if err != nil || len(tasks) != 2 || tasks[0].Expect != "42" {
		t.Errorf("%+v, %v", tasks, err)
	}
	for text, want := range map[string]string{
		"version: 2\ntasks: [{task: a}]\n": "version is 2", "version: 1\n": "has no tasks", "version: 1\ntasks: [{task: ' '}]\n": "tasks[0] has no task",
		"version: 1\ntasks: [{taks: a}]\n": "t.yaml:2", "version: 1\ntasks: [" + strings.Repeat("{task: a},", 201) + "]\n": "at most 200", "{": "t.yaml",
	} {
		if _, err := Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
