package roles

import (
	"fmt"
	"os"
	"path/filepath"

	"abl/internal/state"
)

// FoundFile is the file of a record that says what a sweep found after the call.
const FoundFile = "swept.json"

// KeepFound keeps what a sweep of the role's workspace found after the call.
func (r Record) KeepFound(f state.Found) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return fmt.Errorf("cannot keep the record of a call: %w", err)
	}
	return noteJSON(filepath.Join(r.Dir, FoundFile), f)
}
