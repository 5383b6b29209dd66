package pause

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestFor(t *testing.T) {
	if err := For(t.Context(), time.Microsecond); err != nil {
		t.Error(err)
	}
	why := errors.New("a signal")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := For(ctx, time.Hour); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}
