package config

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"

	"abl/internal/yamlfile"
)

// scope defines which values of a key act on the user's machine, network or secrets. Only the user may
// set such a value, not a repository.
type scope struct {
	key  string // as in rules, or a prefix of keys
	acts func(l *Loaded, text string) bool
	why  string // completes "KEY …": the effect of such a value, "" without one
}

// harmless are the keys that a repository may set, unless scopes has a row for a part of them.
var harmless = strings.Fields("version source.dir adopt publish remote.lease agent models effort " +
	"builder_commands verifier_commands app loop verify budget limits toolchain agents.*.key_every " +
	"agents.*.provider agents.*.version agents.*.api agents.*.command agents.*.acp agents.*.npm agents.*.env " +
	"agents.*.usage agents.*.image agents.*.model")

// scopes are the keys that only the user may set, if their value acts. Only the user may set a key that is
// in neither table.
var scopes = []scope{
	{"directories", func(_ *Loaded, text string) bool { return text != cloneDir },
		"gives a role a folder with files of yours"},
	{"source.repo", func(_ *Loaded, text string) bool { return text != "" && text != "." },
		"opens a repository outside the project"},
	{"remote.name", given, "makes abl run git fetch and git push with your credentials"},
	{"notify.command", given, "runs a command on this machine"},
	{"app.services.*.dockerfile", outsideImages, "builds an image from a folder outside " + imagesDir},
	{"app.services.*.files", given, "gives a container a file that git does not track"},
	{"commit.allow_secrets", given, "lets a secret of .env into a commit"},
	{"prices", func(l *Loaded, text string) bool { return text != "" && l.NeedsPrices() },
		"decides when a budget in dollars is reached"},
	{"network.allow", func(_ *Loaded, text string) bool { return strings.Contains(text+",", mayBePrivate+",") },
		"lets agents reach private addresses of your network"},
	{"network.ca_cert", given, "decides which servers get the keys"},
	{"network.proxy", given, "sends the gateway's requests through another server"},
	{"network.pool", given, "takes a range of this machine's networks"},
	{"network.builds", func(_ *Loaded, text string) bool { return text == BuildsHost },
		"builds images as root on this machine's network"},
	{"network.egress", given, "sends the gateway's requests through another network"},
	{"images.*.dockerfile", outsideImages, "builds an image from a folder outside " + imagesDir},
	{"agents.*.scenario", func(_ *Loaded, text string) bool { return text != "" && !strings.HasPrefix(text, ".abl/") },
		"reads files of a folder outside .abl into a call"},
	{"agents.*.login", func(_ *Loaded, text string) bool { return text == "plan" }, "uses your subscription"},
	{"agents.*.headers", given, "sends a value of .env with each request of an agent"},
	{"agents.*.query", given, "changes where an agent's requests go"},
	{"agents.*.key_command", given, "runs a command on this machine"},
	{"agents.*.key", func(_ *Loaded, text string) bool { return text != "" && text != NoKey },
		"sends a variable of yours as a key"},
	{"agents.*.base", given, "decides which server gets a key"},
}

// imagesDir is the folder for Dockerfiles of a repository.
const imagesDir = ".abl/images"

func given(_ *Loaded, text string) bool { return text != "" }

func outsideImages(_ *Loaded, text string) bool {
	return text != "" && !strings.HasPrefix(path.Dir(text)+"/", imagesDir+"/")
}

// scopeOf returns the row of a key.
func scopeOf(key string) (s scope, found bool) {
	parts := strings.Split(key, ".")
	covered := func(by string) bool {
		n := strings.Count(by, ".") + 1
		return len(parts) >= n && rule{key: by}.about(parts[:n])
	}
	if i := slices.IndexFunc(scopes, func(s scope) bool { return covered(s.key) }); i >= 0 {
		return scopes[i], true
	}
	if slices.ContainsFunc(harmless, covered) {
		return scope{key: key, acts: func(*Loaded, string) bool { return false }}, true
	}
	return scope{key: key, acts: given, why: "is not known to be harmless"}, false
}

// UserValue is a value that acts on the user's machine, network or secrets, and that a file of
// the project sets.
type UserValue struct {
	Key   string // dotted, or the name of a variable in .env
	Text  string // the value; for prices in the file, as JSON
	File  string // that sets it, relative to the project
	Line  int    // in that file, 0 if unknown
	Reads string // a file of the project with a part of the value, or ""
	Shows string // a file of the project that the value shows to containers: it acts if git does not track the file
	Lends string // a folder that the value gives to a role: it acts if files are there that git does not track
	Why   string // completes "KEY …"
}

// UserValues returns the values of user scope in files of the project: values of the configuration file
// that nothing overrides, and every variable of .env. It skips values from the environment and from
// flags, which the user set.
func (l *Loaded) UserValues() (all []UserValue) {
	defaults := yamlfile.Values(Default())
	for key, text := range byKey(yamlfile.Values(l.Config)) {
		s, _ := scopeOf(key)
		from := l.source(key)
		if text == defaults[key] || !s.acts(l, text) || from != "" && !l.inFile(from) {
			continue
		}
		v := UserValue{Key: key, Text: text, File: l.File, Line: yamlfile.LineOf(l.text, key), Why: s.why}
		switch {
		case key == "network.ca_cert" && !path.IsAbs(text), key == "prices" && l.Prices.File != "":
			v.Reads = text
		case s.key == "directories":
			v.Lends = text
		case s.key == "app.services.*.files":
			v.Shows = text
		case key == "prices":
			data, _ := json.Marshal(l.Prices.Own) // values from YAML always encode
			v.Text = string(data)
		}
		all = append(all, v)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Dotenv)) {
		const why = "is read as a key, an address or a setting of abl"
		all = append(all, UserValue{Key: name, Text: l.Dotenv[name], File: EnvFile, Line: l.envLines[name], Why: why})
	}
	return all
}
