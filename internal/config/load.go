package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/yamlfile"
)

// File is the path of a project's settings.
const File = ".abl/config.yaml"

// files are the possible paths of the settings, in order. All but the first are of earlier tools.
var files = []string{File, ".abl/abl.config.yaml", "abl.config.yaml"}

// EnvFile is the path of the file with the keys of a project.
const EnvFile = ".env"

const (
	envPrefix = "ABL_"
	maxBytes  = 1 << 20
)

// Loaded is a configuration with the sources of its values.
type Loaded struct {
	Config
	File     string            // relative to the project, "" without one
	Dotenv   map[string]string // all variables of .env, including the keys of providers
	Warnings []string          // for the user, without values of .env
	// by dotted key, the source of each value that is not a default: FILE:LINE, a variable or a flag
	Sources  map[string]string
	text     []byte         // of the file
	envLines map[string]int // by name, the line of each variable in .env
}

// Key returns a variable of the user, such as a provider's key, and its source: .env, or else the
// environment. Both are empty if it is in neither.
func (l *Loaded) Key(name string) (value, from string) {
	if v := l.Dotenv[name]; v != "" {
		return v, EnvFile
	}
	if v := os.Getenv(name); v != "" {
		return v, "the environment"
	}
	return "", ""
}

// flagNames are the flags that set a key, as users type them.
var flagNames = map[string]string{
	"agent": "--agent", "agent.builder": "--builder-agent", "agent.verifier": "--verifier-agent", "models": "--model",
	"loop.max_verifier_iterations": "--max-iterations", "budget.phase.usd": "--budget-usd",
	"budget.phase.tokens": "--budget-tokens",
	"remote.name":         "--remote",
}

// Load reads the configuration of the project and checks its values. It does not look at the
// workspaces. Each layer overrides the one before it: defaults, the project's file, ABL_* in .env, ABL_*
// in the environment, flags by dotted key. Empty variables and flags are ignored. An invalid value is a
// *yamlfile.Error, which may have a hint.
func Load(project string, env func(string) (string, bool), flags map[string]string) (*Loaded, error) {
	l := &Loaded{Config: Default(), Sources: map[string]string{}}
	if err := cmp.Or(readFile(l, project), readDotenv(l, project)); err != nil {
		return nil, err
	}
	layers := []func(key string) (text, name string){
		func(key string) (text, name string) {
			return l.Dotenv[variable(key)], variable(key) + " in " + EnvFile
		},
		func(key string) (text, name string) {
			text, _ = env(variable(key)) // unset counts as empty
			return text, variable(key)
		},
		func(key string) (text, name string) { return flags[key], cmp.Or(flagNames[key], "flag "+key) },
	}
	var before PerRole // the flags
	for _, layer := range layers {
		before = l.Agent
		for _, key := range Settable() {
			text, name := layer(key)
			if text == "" {
				continue
			}
			if err := set(l, key, text, name); err != nil {
				return nil, err
			}
		}
	}
	l.cleanPaths()
	if l.Source.Repo != "" && l.source("directories.src") == "" {
		l.Directories.Src = cloneDir
	}
	dropModels(l, "builder", before.Builder, l.Agent.Builder, &l.Models.Builder)
	dropModels(l, "verifier", before.Verifier, l.Agent.Verifier, &l.Models.Verifier)
	if err := validate(l); err != nil {
		return nil, err
	}
	return l, nil
}

// cleanPaths cleans each path of the project: ./src and src/ become src. A path out of the project is
// unchanged, for the error.
func (c *Config) cleanPaths() {
	clean := func(file *string) {
		if cleaned := path.Clean(*file); *file != "" && filepath.IsLocal(cleaned) {
			*file = cleaned
		}
	}
	for _, file := range []*string{
		&c.Directories.Src, &c.Directories.Tests, &c.Source.Repo, &c.Source.Dir, &c.Prices.File, &c.Network.CACert,
		&c.Images.Builder.Dockerfile, &c.Images.Verifier.Dockerfile, &c.Images.App.Dockerfile,
	} {
		clean(file)
	}
	for i := range c.Adopt.Exclude {
		clean(&c.Adopt.Exclude[i])
	}
	for name, a := range c.Agents {
		clean(&a.Scenario)
		c.Agents[name] = a
	}
	if c.App == nil {
		return
	}
	for name, s := range c.App.Services {
		clean(&s.Dockerfile)
		for at, file := range s.Files {
			clean(&file)
			s.Files[at] = file
		}
		c.App.Services[name] = s
	}
}

// cloneDir is the Builder's workspace if it is a clone.
const cloneDir = ".abl/work/src"

// readFile reads the first settings file that exists.
func readFile(l *Loaded, project string) error {
	for _, name := range files {
		data, err := hostfs.Read(project, name, maxBytes)
		if errors.Is(err, hostfs.ErrAbsent) {
			continue
		}
		if err != nil {
			return err
		}
		l.File = name
		return decode(l, data)
	}
	return nil
}

// gone are removed settings, each with its replacement.
var gone = map[string]string{
	"loop.require_approval": "remove it: run one phase at a time, and read `abl report N` before the next",
	"verify.challenge": "remove it: abl always runs the tests without the app " +
		"and against apps that give every request the same response",
}

// decode decodes the settings, and records the line of each one.
func decode(l *Loaded, data []byte) error {
	l.text = data
	for _, k := range yamlfile.KeysIn(data) {
		if hint := gone[k.String()]; hint != "" {
			return &yamlfile.Error{File: l.File, Line: k.Line, Msg: k.String() + " is no longer a setting", Hint: hint}
		}
		if k.HasValue() {
			l.Sources[k.String()] = fmt.Sprintf("%s:%d", l.File, k.Line)
		}
	}
	return yamlfile.Decode(l.File, data, &l.Config)
}

// readDotenv reads .env, if it exists.
func readDotenv(l *Loaded, project string) error {
	vars, lines, warnings, err := readEnv(filepath.Join(project, EnvFile))
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	l.Dotenv, l.envLines, l.Warnings = vars, lines, append(l.Warnings, warnings...)
	return err
}

// variable returns the environment variable of a key, such as ABL_LOOP_CALL_TIMEOUT.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// Settable returns the keys that a variable or `abl config set` can set, sorted: all single values, and
// the sections that one value sets as a whole.
func Settable() []string {
	c := Default()
	c.App = &App{}
	keys := yamlfile.Values(c)
	delete(keys, "version")
	// before its parts
	for _, whole := range []string{"agent", "models", "effort", "loop.no_progress", "publish", "remote"} {
		keys[whole] = ""
	}
	return slices.Sorted(maps.Keys(keys))
}

// set sets a key, and removes the sources of its parts.
func set(l *Loaded, key, text, name string) error {
	if err := yamlfile.Set(name, &l.Config, key, text); err != nil {
		return err
	}
	for covered := range l.Sources {
		if strings.HasPrefix(covered, key+".") || strings.HasPrefix(covered, key+"[") {
			delete(l.Sources, covered)
		}
	}
	l.Sources[key] = name
	return nil
}

// Line is a setting in the output of `abl config`.
type Line struct {
	Key    string `json:"key"` // dotted
	Value  string `json:"value"`
	Source string `json:"source"` // default, FILE:LINE, a variable or a flag
}

// Lines returns every setting, sorted by key.
func (l *Loaded) Lines() []Line {
	values := yamlfile.Values(l.Config)
	lines := make([]Line, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch command, is := strings.CutSuffix(key, ".output"); {
		case key == "app.ready.port": // belongs to services
			continue
		case is && values[key] == "" && strings.Contains(command, "_commands."):
			values[key] = "hidden"
		}
		lines = append(lines, Line{key, values[key], cmp.Or(l.source(key), "default")})
	}
	return lines
}

// about returns the part of a key that names a single value.
var about = map[string]string{"loop.no_progress": ".failed", "publish": ".when", "remote": ".name"}

// source returns the source of the value of a key, "" for a default. It may be the source of a value
// that was set for a whole section.
func (l *Loaded) source(key string) string {
	for at := key; at != ""; at = yamlfile.Above(at) {
		from, ok := l.Sources[at]
		if part := about[at]; ok && (part == "" || key == at+part || at == key) {
			return from
		}
	}
	return ""
}

// Chosen reports whether the user set a key.
func (l *Loaded) Chosen(key string) bool { return l.source(key) != "" }

// inFile reports whether a source is the project's file.
func (l *Loaded) inFile(source string) bool { return strings.HasPrefix(source, l.File+":") }

// mistake returns an error about the value of a key, with its place. The place of a missing value is the
// line of its section.
func (l *Loaded) mistake(key, hint, format string, args ...any) error {
	e := yamlfile.At(cmp.Or(l.File, File), l.text, key, fmt.Errorf(format, args...))
	if from := l.source(key); from != "" && !l.inFile(from) {
		e.File, e.Line = from, 0
	}
	if strings.HasSuffix(key, "]") { // the line shows the item
		e.Msg = strings.Replace(e.Msg, key, yamlfile.Above(key), 1)
	}
	e.Hint = hint
	return e
}
