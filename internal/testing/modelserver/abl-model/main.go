// Command abl-model serves a scenario as a model, for tests that need one in a container.
// "abl-model SCENARIO" listens on port 9100 until it is stopped.
package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/testing/modelserver"
	"abl/roles/agent"
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
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	script, err := agent.Parse(args[0], data)
	if err != nil {
		return err
	}
	for i, c := range script.Calls {
		if script.Calls[i], err = c.Resolve(filepath.Dir(args[0])); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	places := modelserver.Places{
		Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests},
		AppURL:     "http://app:3000",
	}
	return http.ListenAndServe(listen, &modelserver.Server{
		Source: modelserver.Scenario(script, places, time.Now),
		Log:    os.Stdout,
	})
}
