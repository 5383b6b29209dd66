package modelserver

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/roles/agent"
)

// Open returns a server that plays the scenario file at path for the roles and the app of a phase.
// The scenario may refer to files in the same folder. The server writes its log to log.
func Open(path string, log io.Writer) (*Server, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	script, err := agent.Parse(path, data)
	if err != nil {
		return nil, err
	}
	for i, c := range script.Calls {
		if script.Calls[i], err = c.Resolve(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	places := Places{
		Workspaces: map[string]string{"builder": helper.Src, "verifier": helper.Tests},
		AppURL:     "http://app:3000",
	}
	return &Server{Source: Scenario(script, places, time.Now), Log: log}, nil
}
