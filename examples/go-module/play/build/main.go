// Tickets hands out tickets and knows those that it has handed out.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"sync"

	"github.com/google/uuid"
)

type tickets struct {
	mu    sync.Mutex
	given map[uuid.UUID]bool
}

func answer(w http.ResponseWriter, status int, key, value string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{key: value})
}

func (t *tickets) give(w http.ResponseWriter, _ *http.Request) {
	id := uuid.New()
	t.mu.Lock()
	t.given[id] = true
	t.mu.Unlock()
	answer(w, http.StatusCreated, "ticket", id.String())
}

func (t *tickets) show(w http.ResponseWriter, r *http.Request) {
	id, err := uuid.Parse(r.PathValue("ticket"))
	if err != nil {
		answer(w, http.StatusBadRequest, "error", "a ticket is a UUID")
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.given[id] {
		answer(w, http.StatusNotFound, "error", "there is no such ticket")
		return
	}
	answer(w, http.StatusOK, "ticket", id.String())
}

func routes() http.Handler {
	t := &tickets{given: map[uuid.UUID]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "status", "ok") })
	mux.HandleFunc("POST /tickets", t.give)
	mux.HandleFunc("GET /tickets/{ticket}", t.show)
	return mux
}

func main() { log.Fatal(http.ListenAndServe(":3000", routes())) }
