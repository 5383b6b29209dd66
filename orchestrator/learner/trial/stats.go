// Package trial compares tries with and without what was learned: which tasks,
// what came of each try, and what can be said of the difference.
package trial

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is an estimate and its 95 % confidence interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// z is the normal quantile of a 95 % interval.
const z = 1.959963984540054

// Wilson is the score interval of a share: good among n. It keeps within 0 and 1
// and says something of few tries too.
func Wilson(good, n int) Interval {
	if n == 0 {
		return Interval{0, 0, 1}
	}
	p, m := float64(good)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{p, max(mid-half, 0), min(mid+half, 1)}
}

// Newcombe is the interval of the difference of two shares, a less b, made of
// their Wilson intervals.
func Newcombe(a, b Interval) Interval {
	d := a.Value - b.Value
	low := d - math.Hypot(a.Value-a.Low, b.High-b.Value)
	high := d + math.Hypot(a.High-a.Value, b.Value-b.Low)
	return Interval{d, max(low, -1), min(high, 1)}
}

// resamples of a bootstrap.
const resamples = 10_000

// Bootstrap is the percentile interval of the difference of two means, a less b,
// from resamples with a fixed seed. ok is false when there is nothing on a side.
func Bootstrap(a, b []float64) (i Interval, ok bool) {
	if len(a) == 0 || len(b) == 0 {
		return i, false
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]float64, resamples)
	for k := range all {
		all[k] = again(r, a) - again(r, b)
	}
	slices.Sort(all)
	const tail = 0.025
	return Interval{Mean(a) - Mean(b), all[int(tail*resamples)], all[int((1-tail)*resamples)-1]}, true
}

// again is the mean of a resample.
func again(r *rand.Rand, x []float64) (mean float64) {
	for range x {
		mean += x[r.IntN(len(x))] / float64(len(x))
	}
	return mean
}

// Mean of nothing is 0.
func Mean(x []float64) (mean float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	return mean
}
