package cli

import (
	"fmt"
	"path/filepath"
	"slices"

	"abl/internal/config"
	"abl/internal/redact"
)

// WeakFlag lets a person go on with an engine whose networks are not proven.
const WeakFlag = "allow-weak-network"

// EnvironmentFlags are the flags of everything that starts containers of a role.
func EnvironmentFlags() []Flag {
	return slices.Concat([]Flag{
		{Name: WeakFlag, Usage: "go on although the engine's networks are not proven to keep containers from this machine and the world; every report then says so"},
	}, ImageFlags())
}

// ImageFlags are the flags of everything that may have to make an image.
func ImageFlags() []Flag {
	return []Flag{
		{Name: "ca-cert", Value: "FILE", Env: "ABL_CA_CERT", Usage: "trust this CA while images are built"},
		{Name: "offline", Env: "ABL_OFFLINE", Usage: "make no image that needs a network: a missing one is an error"},
	}
}

// HideSecrets keeps what the project's .env has of secrets out of all that
// leaves abl, and says which of them cannot be. It comes before the settings are
// read, whose mistakes are quoted; a .env that cannot be read is one of them.
func (in *Input) HideSecrets(root string) (warnings []string) {
	vars, _, err := config.ReadEnv(filepath.Join(root, ".env"))
	if err != nil {
		return nil
	}
	secrets, weak := redact.Secrets(vars, true)
	in.Safe.Hide(secrets...)
	for _, name := range weak {
		warnings = append(warnings, fmt.Sprintf("the secret of %s in .env is shorter than %d characters, or a plain word or number: it cannot be kept out of what abl shows", name, redact.Shortest))
	}
	return warnings
}
