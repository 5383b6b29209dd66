package ground

import (
	"fmt"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/internal/dotenv"
	"abl/internal/redact"
)

// HideSecrets keeps what the project's .env has of secrets out of all that
// leaves abl, and says which of them cannot be. It comes before the settings are
// read, whose mistakes are quoted; a .env that cannot be read is one of them.
func HideSecrets(in *cli.Input, root string) (warnings []string) {
	vars, _, err := dotenv.Read(filepath.Join(root, ".env"))
	if err != nil {
		return nil
	}
	secrets, weak := redact.Secrets(vars, true)
	in.Outlet.Hide(secrets...)
	for _, name := range weak {
		warnings = append(warnings, fmt.Sprintf("the secret of %s in .env is shorter than %d characters, or a plain word or number: it cannot be kept out of what abl shows", name, redact.Shortest))
	}
	return warnings
}
