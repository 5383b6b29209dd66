package proc

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	if err := Pause(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	why := errors.New("a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Pause(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("Pause after the end: got %v, want %v", err, why)
	}
}
