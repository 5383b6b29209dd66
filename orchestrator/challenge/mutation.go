package challenge

import (
	"fmt"
	"net/http"
	"strings"

	"abl/orchestrator/dirs"
)

// Control is the name of the proxy that changes nothing.
const Control = dirs.NoMutation

// Mutation is one small way in which an app can be wrong.
type Mutation struct {
	Name string
	What string // in plain words, as the end of "an app in which …"

	change func(*answer) bool                 // edits an answer without its body
	edit   func(data []byte, f found) []byte  // edits JSON that says success
	empty  bool                               // takes the body away
	forget func(method string) (applies bool) // writes that do not show later
	repeat string                             // method that is carried out twice
}

// Mutations are all of them, in the order in which they are tried.
func Mutations() []Mutation {
	return []Mutation{
		status("status-200-201", "200 becomes 201", func(s int) int { return swap(s, 200, 201) }),
		status("status-201-200", "201 becomes 200", func(s int) int { return swap(s, 201, 200) }),
		status("status-204-200", "204 becomes 200", func(s int) int { return swap(s, 204, 200) }),
		status("status-404-200", "404 becomes 200", func(s int) int { return swap(s, 404, 200) }),
		status("status-refused-200", "400, 401, 403, 409 and 422 become 200", refusedToSuccess),
		status("status-refused-other", "a refusal has the status of another", refusedOtherwise),
		status("status-redirect-200", "a redirect becomes 200", redirectToSuccess),
		header("header-location", "the Location header is missing", "Location"),
		header("header-content-type", "the Content-Type header is missing", "Content-Type"),
		{Name: "body-empty", What: "the body of a success is empty", empty: true},
		{Name: "field-first", What: "the first field of an object is missing", edit: dropFirst},
		{Name: "field-last", What: "the last field of an object is missing", edit: dropLast},
		{Name: "value-number", What: "the last number is one more", edit: changeNumber},
		{Name: "value-text", What: "the last string has a letter more", edit: changeText},
		{Name: "value-truth", What: "the last boolean is the other", edit: changeTruth},
		{Name: "value-null", What: "the last value is null", edit: changeToNull},
		{Name: "array-short", What: "a list lacks its last element", edit: shortArray},
		{Name: "array-long", What: "a list has its last element twice", edit: longArray},
		{Name: "array-order", What: "the first and the last element of a list stand in each other's place", edit: swapArray},
		{Name: "forget-create", What: "what POST did does not show later", forget: only(http.MethodPost)},
		{Name: "forget-change", What: "what PUT or PATCH did does not show later", forget: only(http.MethodPut, http.MethodPatch)},
		{Name: "forget-remove", What: "what DELETE did does not show later", forget: only(http.MethodDelete)},
		{Name: "create-twice", What: "every POST is carried out twice", repeat: http.MethodPost},
	}
}

// Named finds a mutation, Control among them.
func Named(name string) (Mutation, error) {
	if name == Control {
		return Mutation{Name: Control, What: "nothing is changed"}, nil
	}
	names := []string{Control}
	for _, m := range Mutations() {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Mutation{}, fmt.Errorf("there is no mutation %q; there are %s", name, strings.Join(names, ", "))
}

// status changes the status to what another gives, when that is not the same.
func status(name, what string, other func(int) int) Mutation {
	return Mutation{Name: name, What: what, change: func(a *answer) bool {
		to := other(a.status)
		if to == a.status {
			return false
		}
		a.head = withStatus(a.head, to)
		if a.status == http.StatusNoContent {
			a.head = withLength(a.head, 0)
		}
		return true
	}}
}

func swap(status, from, to int) int {
	if status == from {
		return to
	}
	return status
}

func refusedToSuccess(status int) int {
	if refusedOtherwise(status) != status {
		return http.StatusOK
	}
	return status
}

// refusedOtherwise gives refusals the status that they are most often mistaken for.
func refusedOtherwise(status int) int {
	other, ok := map[int]int{400: 422, 401: 403, 403: 401, 409: 400, 422: 400}[status]
	if !ok {
		return status
	}
	return other
}

func redirectToSuccess(status int) int {
	switch status {
	case 301, 302, 303, 307, 308:
		return http.StatusOK
	}
	return status
}

func header(name, what, key string) Mutation {
	return Mutation{Name: name, What: what, change: func(a *answer) bool {
		if a.header.Get(key) == "" {
			return false
		}
		a.head = withoutHeader(a.head, key)
		return true
	}}
}

func only(methods ...string) func(string) bool {
	return func(method string) bool {
		for _, m := range methods {
			if m == method {
				return true
			}
		}
		return false
	}
}
