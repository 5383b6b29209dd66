package config

import "time"

// Default is the configuration of a project whose file says nothing.
func Default() Config {
	return Config{
		Version:     1,
		Directories: Directories{Src: "src", Tests: ".abl/tests"},
		Agent:       PerRole{Builder: "gemini", Verifier: "gemini"},
		Loop: Loop{
			MaxVerifierIterations: 5,
			CallTimeout:           Duration(30 * time.Minute),
			IdleTimeout:           Duration(10 * time.Minute),
			OutageBudget:          Duration(4 * time.Hour),
			NoProgress:            NoProgress{Unverified: 2},
		},
		Verify:  Verify{Evidence: "required", Challenge: []string{"away", "null-app"}},
		Network: Network{Pool: "10.231.0.0/16", Builds: "engine"},
		Limits: Limits{
			Memory:   4 << 30,
			CPUs:     2,
			Pids:     512,
			Requests: 500,
			Disk:     2 << 30,
			Inodes:   500_000,
			Output:   1 << 30,
			File:     50 << 20,
		},
	}
}

// SetDefaults fills in what an app section may leave out.
func (a *App) SetDefaults() {
	a.Copy = "auto"
	a.Ready.Timeout = Duration(time.Minute)
}

// SetDefaults fills in what a service may leave out.
func (s *Service) SetDefaults() { s.Ready.Timeout = Duration(time.Minute) }

// SetDefaults fills in what a declared command may leave out.
func (c *Command) SetDefaults() { c.Timeout = Duration(10 * time.Minute) }
