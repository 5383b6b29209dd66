package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notForUsers are variables that abl reads and users do not set: abl sets them in its containers, they
// identify a runner of CI, or tests set them.
const notForUsers = " ABL_APP_URL ABL_EFFORT ABL_EXCHANGE ABL_MODEL HOME TF_BUILD TEAMCITY_VERSION npm_config_registry ABL_HELPER ABL_GATEWAY PORT "

// abl help environment names every variable that the programs read.
func TestEnvironmentTopicIsComplete(t *testing.T) {
	read := regexp.MustCompile(`(?:Getenv|LookupEnv|[eE]nv)\("([A-Za-z_]+)"\)|Env: +"([A-Z_]+)"|(?:KeyVar|BaseVar|RegionVar): +"([A-Z_]+)"|Var += "([A-Z_]+)"`)
	for _, dir := range []string{"cmd", "images", "internal", "orchestrator", "roles"} {
		err := filepath.WalkDir("../../"+dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/testing") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range read.FindAllStringSubmatch(string(text), -1) {
				name := m[1] + m[2] + m[3] + m[4]
				if !strings.Contains(notForUsers, " "+name+" ") && !strings.Contains(environmentText, name) {
					t.Errorf("abl help environment: got no %s, want it because %s reads it", name, path)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
