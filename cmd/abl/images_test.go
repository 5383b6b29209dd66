package main

import (
	"testing"

	"abl/images"
)

// What an image is called and whether it is there stand first, for scripts.
func TestImageLine(t *testing.T) {
	for want, s := range map[string]images.State{
		"claude       missing":                                       {Name: "claude"},
		"claude       missing  abl/claude:1":                         {Name: "claude", Ref: "abl/claude:1", Origin: "debootstrap"},
		"claude       made     abl/claude:1 (base from debootstrap)": {Name: "claude", Ref: "abl/claude:1", Have: true, Origin: "debootstrap"},
		"holder       made     abl/holder:1":                         {Name: "holder", Ref: "abl/holder:1", Have: true},
	} {
		if got := imageLine(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
