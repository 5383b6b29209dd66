package main

import (
	"net/http/httptest"
	"testing"
)

func TestStatus(t *testing.T) {
	for path, want := range map[string]int{"/health": 200, "/tickets/x": 400, "/tickets/00000000-0000-4000-8000-000000000000": 404} {
		w := httptest.NewRecorder()
		routes().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("GET %s: %d, want %d", path, w.Code, want)
		}
	}
}
