// Command abl-model serves a scenario as a model, for tests that need one in a container.
// "abl-model SCENARIO" listens on port 9100 until it is stopped.
package main

import (
	"fmt"
	"net/http"
	"os"

	"abl/internal/testing/modelserver"
)

const listen = ":9100"

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "abl-model:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one argument, the scenario file")
	}
	model, err := modelserver.Open(args[0], os.Stdout)
	if err != nil {
		return err
	}
	return http.ListenAndServe(listen, model)
}
