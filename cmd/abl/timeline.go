package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"abl/orchestrator/ledger"
	"abl/orchestrator/prices"
)

// timeline is what was spent in each hour. Its memory is bounded by the hours that
// are kept, not by the rows.
type timeline struct {
	hours map[int64]*amount
	left  int // rows without a time, or beyond what is kept
}

// mostHours is more than a year.
const mostHours = 10_000

func (t *timeline) add(r ledger.Row, usd prices.USD) {
	at := r.When()
	if at.IsZero() {
		t.left++
		return
	}
	if t.hours == nil {
		t.hours = map[int64]*amount{}
	}
	hour := at.Unix() / 3600
	m := t.hours[hour]
	if m == nil {
		if len(t.hours) >= mostHours {
			t.left++
			return
		}
		m = &amount{}
		t.hours[hour] = m
	}
	tokens, _ := r.Tokens()
	*m = m.plus(amount{Tokens: tokens, USD: usd})
}

// bars is how high the picture is, in lines.
const bars = 8

// plot draws columns over time: hours when there are few, else days, or as many
// days together as the width asks for. It shows dollars where any have a price.
func (t *timeline) plot(columns int) string {
	hours := slices.Sorted(maps.Keys(t.hours))
	if len(hours) == 0 {
		return ""
	}
	const margin = 12 // the scale's
	room := int64(max(columns-margin, 10))
	first, last, unit, name := hours[0], hours[len(hours)-1], int64(1), "hour"
	if last-first >= 48 {
		first, unit, name = first/24*24, 24, "day"
	}
	if n := (last-first)/unit + 1; n > room {
		many := (n + room - 1) / room
		unit *= many
		name = fmt.Sprintf("%d %ss", many, name)
	}
	values, inUSD := t.columns(hours, first, unit, (last-first)/unit+1)
	wide := int(min(max(room/int64(len(values)), 1), 4))
	top, scale := slices.Max(values), "tokens"
	if inUSD {
		scale = "USD"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s per %s, UTC\n", scale, name)
	for line := bars; line > 0; line-- {
		label := ""
		if line == bars {
			label = amountText(top, inUSD)
		}
		fmt.Fprintf(&b, "%*s |%s\n", margin-2, label, strings.TrimRight(bar(values, top, line, wide), " "))
	}
	from, to := time.Unix(first*3600, 0).UTC(), time.Unix(last*3600, 0).UTC()
	layout := "2006-01-02 15h"
	if unit%24 == 0 {
		layout = time.DateOnly
	}
	fmt.Fprintf(&b, "%*s +%s\n%*s%s to %s\n", margin-2, "0", strings.Repeat("-", len(values)*wide), margin, "", from.Format(layout), to.Format(layout))
	if t.left > 0 {
		fmt.Fprintf(&b, "%*s%d rows are not in it: they have no time, or too many hours do\n", margin, "", t.left)
	}
	return b.String()
}

// columns adds the hours up.
func (t *timeline) columns(hours []int64, first, unit, n int64) (values []float64, inUSD bool) {
	for _, m := range t.hours {
		inUSD = inUSD || m.USD > 0
	}
	values = make([]float64, n)
	for _, h := range hours {
		m := t.hours[h]
		if inUSD {
			values[(h-first)/unit] += float64(m.USD)
		} else {
			values[(h-first)/unit] += float64(m.Tokens)
		}
	}
	return values, inUSD
}

func amountText(v float64, inUSD bool) string {
	if inUSD {
		return prices.USD(v).Short()
	}
	return fmt.Sprintf("%.0f", v)
}

// bar is one line of the picture, counted from below; each value is so wide.
func bar(values []float64, top float64, line, wide int) string {
	eighths := []rune(" ▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		full := 0.0
		if top > 0 {
			full = math.Ceil(v / top * bars * 8) // what is more than nothing is seen
		}
		c := string(eighths[int(min(max(full-float64(line-1)*8, 0), 8))])
		b.WriteString(strings.Repeat(c, max(wide-1, 1)))
		if wide > 1 {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
