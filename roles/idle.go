package roles

import (
	"context"
	"os"
	"time"

	"abl/internal/sandbox"
)

// quiet measures how long a call has done nothing: printed nothing, asked nothing
// of its provider, and used next to no CPU. What it costs to ask for the last two
// is paid only once nothing has been printed for a while.
type quiet struct {
	idle    time.Duration // how long it may be
	printed int64
	last    time.Time // when it last did something
	load    func(context.Context) []sandbox.Load
	was     []sandbox.Load // when it was measured last, nil for not yet
	at      time.Time
	looks   int // since it last did something
}

const (
	busyShare = 20      // a twentieth of one CPU is work
	busyBytes = 2 << 10 // through the gate since the last look: more than connections need to stay open
)

// enoughLooks keeps an abl that was itself stopped, or that slept with its machine,
// from taking its own absence for the call's.
const enoughLooks = 3

// tooLong takes what has been printed until now, in bytes, and says whether nothing
// has been done for as long as it may.
func (q *quiet) tooLong(ctx context.Context, printed int64) bool {
	now := time.Now()
	if printed != q.printed {
		q.printed, q.last, q.was, q.looks = printed, now, nil, 0
	}
	if now.Sub(q.last) >= q.idle/4 && now.Sub(q.at) >= q.idle/8 {
		q.look(ctx, now)
	}
	return now.Sub(q.last) > q.idle && q.looks >= enoughLooks
}

// look measures, and compares with the last time. What cannot be measured counts
// for nothing either way.
func (q *quiet) look(ctx context.Context, now time.Time) {
	is := q.load(ctx)
	q.looks++
	if q.was != nil && worked(q.was, is, now.Sub(q.at)) {
		q.last, q.looks = now, 0
	}
	q.was, q.at = is, now
}

// worked compares two measurements of the same boxes.
func worked(was, is []sandbox.Load, between time.Duration) bool {
	for i := range min(len(was), len(is)) {
		if is[i].CPU-was[i].CPU >= max(between/busyShare, 1) || is[i].Net-was[i].Net >= busyBytes {
			return true
		}
	}
	return false
}

// quietness begins to measure a call.
func (r *Runner) quietness(j Job, rec Record, intent Intent) *quiet {
	return &quiet{idle: r.Idle, last: lastWord(rec, intent), load: func(ctx context.Context) []sandbox.Load {
		own, err := r.Engine.Load(ctx, r.box(j))
		if err != nil {
			return nil
		}
		if j.Gate == nil {
			return []sandbox.Load{own}
		}
		gate, err := r.Engine.Load(ctx, GateName(r.ID, j.Call.ID))
		if err != nil {
			return []sandbox.Load{own}
		}
		return []sandbox.Load{own, {Net: gate.Net}}
	}}
}

// lastWord is when a call was begun or last printed something, as far as an abl
// that attaches to it can tell.
func lastWord(rec Record, intent Intent) time.Time {
	last := intent.Begun
	for _, path := range []string{rec.Stdout(), rec.Stderr()} {
		if fi, err := os.Lstat(path); err == nil && fi.ModTime().After(last) {
			last = fi.ModTime()
		}
	}
	// By this process's own clock, which no change of the time disturbs; a file's
	// time is the role's to set, and may lie ahead.
	return time.Now().Add(-max(time.Since(last), 0))
}
