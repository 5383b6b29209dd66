package commit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/view"
	"abl/internal/wording"
	"abl/roles/model"
)

// watched is a model. While it answers, it shows for how long, and how much of the answer arrived.
type watched struct {
	*model.Client
	in     *cli.Input
	length atomic.Int64 // of the answer so far, in bytes
	stop   func()       // ends the display of the current try
}

// Ask implements codecommit.Model.
func (w *watched) Ask(ctx context.Context, prompt string, sent func([]byte) error) (model.Answer, error) {
	defer func() { w.stop() }()
	return w.Client.Ask(ctx, prompt, func(body []byte) error {
		w.stop()
		say := func(line string) { w.in.Say("%s", line) }
		w.stop = view.Watch(w.in.Bare.Stderr, time.Tick(time.Second), w.text, say)
		return sent(body)
	})
}

// text returns the line of progress.
func (w *watched) text(took time.Duration) string {
	const bytesPerToken = 4
	text := fmt.Sprintf("%s: %s", w.Name(), took.Round(time.Second))
	if n := w.length.Load(); n > 0 {
		text += ", about " + wording.Thousands((n+bytesPerToken-1)/bytesPerToken) + " tokens so far"
	}
	return w.in.Safe.Line(text)
}
