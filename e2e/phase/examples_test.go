package phase

import (
	"os"
	"testing"

	"abl/internal/testing/lab"
)

// The small projects of examples/ pass. Each has its own toolchain, which is not in the
// Verifier's image. Only ABL_SOAK plays all of them, because the first download of their images
// and modules takes minutes.
func TestExamples(t *testing.T) {
	lab.Long(t)
	for _, tt := range []struct{ name, image, built string }{
		{"go-module", "abl/run-go-1.27", "downloading github.com/google/uuid"},
		{"flask", "abl/run-project:", "Ran 1 test"},
		{"express-postgres", "abl/run-node-24", "added "},
		{"go-cli", "abl/run-go-1.27", "2 b\n1 a\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if turn(t); tt.name != "flask" {
				if os.Getenv("ABL_SOAK") == "" {
					t.Skip("only with ABL_SOAK")
				}
				lab.Egress(t)
			}
			p := lab.From(t, os.DirFS("../../examples/"+tt.name))
			strength := "0"
			if tt.name == "go-cli" { // its altered responses are not HTTP
				strength = "2m"
			}
			p.Env = append(p.Env, "ABL_VERIFY_STRENGTH_TIME="+strength, "ABL_NETWORK_CA_CERT="+os.Getenv("SSL_CERT_FILE"))
			r := p.Must(0, "phase", "1", "--json")
			if got := verdicts(events(t, r)); got != "pass" {
				t.Errorf("got verdicts %q, want %q", got, "pass")
			}
			if tt.name == "go-cli" {
				wants(t, "the report", p.Must(0, "report", "1").Stdout, "for 5 of 5 contracts")
			}
			wants(t, "the Builder", printed(p, "p1-build-1.1"), tt.built)
			wants(t, "the Builder's image", p.Read(".abl/logs/calls/p1-build-1.1/intent.json"), tt.image)
			wants(t, "the Verifier's image", p.Read(".abl/logs/calls/p1-verify-1.1/intent.json"), "abl/run-tools:")
			checkNothingLeft(p)
		})
	}
}
