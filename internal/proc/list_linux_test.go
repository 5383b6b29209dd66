//go:build !portable

package proc

import "testing"

func TestParseStat(t *testing.T) {
	tests := []struct {
		in   string
		want process
		ok   bool
	}{
		{"7 (sh) S 1 7 7 0 -1", process{7, 1, 7, 7}, true},
		{"7 (a) S 9) R 2 3 4 0", process{7, 2, 3, 4}, true},
		{"7 (sh) Z 1 7 7 0 -1", process{}, false},
		{"7 (sh) S 1 7", process{}, false},
		{"7 (sh) S x 7 7 0", process{}, false},
		{"", process{}, false},
	}
	for _, tt := range tests {
		if got, ok := parseStat([]byte(tt.in)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("parseStat(%q): got %v, %v, want %v, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}
