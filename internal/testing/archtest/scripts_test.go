package archtest

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScriptsParse checks the syntax of every shell script in testdata.
func TestScriptsParse(t *testing.T) {
	const root = "../../.."
	seen := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/testdata/") || filepath.Ext(path) != ".sh" {
			return err
		}
		seen++
		if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
			t.Errorf("sh -n %s: got %v, want no error: %s", strings.TrimPrefix(path, root+"/"), err, out)
		}
		return nil
	})
	if err != nil || seen < 100 {
		t.Errorf("got %d scripts, %v, want at least 100", seen, err)
	}
}
