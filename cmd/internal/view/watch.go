package view

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Watch shows text on each tick while something takes time: if out is a terminal, in one line that stop
// removes, otherwise by a call of say each minute. text receives the time since the call of Watch, and
// its result must be redacted. The caller must call stop before it prints anything.
func Watch(out io.Writer, tick <-chan time.Time, text func(took time.Duration) string, say func(string)) (stop func()) {
	live, began := CanSteer(out), time.Now()
	ended, done := make(chan struct{}), make(chan struct{})
	shown := began
	show := func(now time.Time) {
		switch line := text(now.Sub(began)); {
		case live:
			fmt.Fprint(out, hideCursor+clearLine+cut(line, Columns(out)-1)+showCursor)
		case now.Sub(shown) >= silence:
			shown = now
			say(line)
		}
	}
	go func() {
		defer close(done)
		for {
			select {
			case now := <-tick:
				show(now)
			case <-ended:
				if live {
					fmt.Fprint(out, clearLine)
				}
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(ended)
		<-done
	})
}
