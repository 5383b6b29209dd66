package yamlfile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const edited = `# the settings
app:
  # how it starts
  kind: http   # a server
  command: 'npm ''start'' # no'   # from package.json
  port: 3000
  ready:   # wait
    path: /
    # a remark
    timeout: 1m
  env: {A: "1"}
budget: {phase: {tokens: 1}}
`

func TestEdit(t *testing.T) {
	e := NewEdit("config.yaml", []byte(edited))
	e.Set("app.kind", "command")
	e.Set("app.command", `node "x"`)
	e.Set("app.copy", "tar")
	e.Set("limits.pids", "77")
	e.Set("limits.cpus", "3")
	e.Set("app.x.y.z", "1")
	e.Set("effort", "high")
	e.Comment("app.port")
	e.Comment("app.ready")
	e.Comment("app.prepare")
	got, err := e.Bytes()
	want := `# the settings
app:
  x:
    y:
      z: 1
  copy: tar
  # how it starts
  kind: command   # a server
  command: node "x"   # from package.json
  # port: 3000
  # ready:   # wait
  #   path: /
  #   # a remark
  #   timeout: 1m
  env: {A: "1"}
budget: {phase: {tokens: 1}}
limits:
  cpus: 3
  pids: 77
effort: high
`
	if diff := cmp.Diff(want, string(got)); err != nil || diff != "" {
		t.Errorf("edited file: got error %v, want none (-want +got)\n%s", err, diff)
	}
}

func TestEditRefuses(t *testing.T) {
	for _, tt := range []struct{ name, text, key, want string }{
		{"braces", "app: {kind: http}\n", "app.kind", `f:1: app.kind is in braces, which abl does not change`},
		{"added to braces", "app: {kind: http}\n", "app.port", `f:1: app is not a section to add a key to`},
		{"below a value", "app: x\n", "app.ready.path", `f:1: app is not a section to add a key to`},
		{"several lines", "app:\n  kind: |\n    http\n", "app.kind", `f:2: app.kind is not one value on one line`},
		{"a section", "app:\n  kind:\n    a: b\n", "app.kind", `f:2: app.kind is not one value on one line`},
		{"no YAML", "a: [\n", "a", `f: a is not YAML`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := NewEdit("f", []byte(tt.text))
			e.Set(tt.key, "x")
			if _, err := e.Bytes(); err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}
