package runner

import "testing"

func TestPorts(t *testing.T) {
	for line, want := range map[string]int{
		"  0: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0": 3000,
		"  0: 0100007F:0035 00000000:0000 01 0": 0,
		"  sl  local_address rem_address   st":  0,
		"":                                      0,
		" 1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A": 8080,
		" 1: x:zz y 0A": 0,
	} {
		if got, _ := listener(line); got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
	if got := newPorts(map[int]bool{53: true}, map[int]bool{53: true, 8080: true, 3000: true}); got != "3000 8080" {
		t.Errorf("%q", got)
	}
}
