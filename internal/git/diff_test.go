package git

import (
	"io"
	"math/rand"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Texts that are hard to compare do not hold anybody up.
func TestDiffEnds(t *testing.T) {
	hard := func(seed int64) *string {
		var b strings.Builder
		for _, n := range rand.New(rand.NewSource(seed)).Perm(200_000) {
			b.WriteString(strconv.Itoa(n) + "\n")
		}
		text := b.String()
		return &text
	}
	done := make(chan error, 1)
	go func() { done <- Diff(io.Discard, "a", hard(1), hard(2), false) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it goes on")
	}
}
