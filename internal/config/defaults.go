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

// UnmarshalYAML fills in what an app section leaves out.
func (a *App) UnmarshalYAML(read func(any) error) error {
	if a.Copy == "" {
		*a = App{Copy: "auto", Ready: Ready{Timeout: Duration(time.Minute)}}
	}
	type plain App
	return read((*plain)(a))
}

// UnmarshalYAML fills in what a service leaves out.
func (s *Service) UnmarshalYAML(read func(any) error) error {
	s.Ready.Timeout = Duration(time.Minute)
	type plain Service
	return read((*plain)(s))
}

// UnmarshalYAML fills in what a declared command leaves out.
func (c *Command) UnmarshalYAML(read func(any) error) error {
	c.Timeout = Duration(10 * time.Minute)
	type plain Command
	return read((*plain)(c))
}
