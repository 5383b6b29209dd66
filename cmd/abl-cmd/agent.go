package main

import (
	"context"
	"errors"
	"os"
	"time"

	"abl/orchestrator/dirs"
	"abl/roles/scenario"
	"abl/roles/scenario/player"
)

// agent is the scripted agent: abl-agent FILE plays the one call in FILE in the
// folder where it is started.
func agent(ctx context.Context, s started) int {
	if len(s.args) != 1 {
		return refuse(dirs.HelperAgent, errors.New("takes one argument, the file with the call to play"))
	}
	data, err := os.ReadFile(s.args[0])
	if err != nil {
		return refuse(dirs.HelperAgent, err)
	}
	call, err := scenario.ParseCall(s.args[0], data)
	if err != nil {
		return refuse(dirs.HelperAgent, err)
	}
	p := player.Player{Call: call, AppURL: os.Getenv("ABL_APP_URL"), Dir: ".", Out: os.Stdout, Now: time.Now}
	return p.Play(ctx)
}
