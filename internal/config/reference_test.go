package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"abl/internal/testing/audittest"
	"abl/internal/yamlfile"
)

var update = flag.Bool("update", false, "write docs/config.md and docs/config.schema.json")

const (
	page       = "../../docs/config.md"
	schemaFile = "../../docs/config.schema.json"
	mark       = "<!-- Generated from internal/config/reference.yaml: see its first lines. -->\n"
)

// object is a part of a JSON Schema.
type object = map[string]any

// section is a section of reference.yaml.
type section struct {
	About   string                 `yaml:"about"`
	Example string                 `yaml:"example"`
	Keys    map[string]description `yaml:"keys"`
}

// description is an entry of reference.yaml.
type description struct {
	For      string   `yaml:"for"`
	Default  string   `yaml:"default"`
	Takes    string   `yaml:"takes"`
	Values   []string `yaml:"values"`
	Examples []string `yaml:"examples"`
	Min      *float64 `yaml:"min"`
	Max      *float64 `yaml:"max"`
	Pattern  string   `yaml:"pattern"`
}

// UnmarshalYAML also accepts a plain sentence.
func (w *description) UnmarshalYAML(read func(any) error) error {
	if read(&w.For) == nil {
		return nil
	}
	type plain description
	return read((*plain)(w))
}

// reference combines reference.yaml and the program's rules.
type reference struct {
	sections    map[string]section
	description map[string]description // of all sections
	defaults    map[string]string      // with NAME for any name
}

func readReference(t *testing.T) reference {
	t.Helper()
	r := reference{description: map[string]description{}}
	data, err := os.ReadFile("reference.yaml")
	if err == nil {
		err = yamlfile.Decode("reference.yaml", data, &r.sections)
	}
	for _, s := range r.sections {
		maps.Copy(r.description, s.Keys)
	}
	c := Default()
	const each = "app: {services: {NAME: {}}}\nagents: {NAME: {}}\n" +
		"builder_commands: {NAME: {}}\nverifier_commands: {NAME: {}}\n"
	if err == nil {
		err = yamlfile.Decode("each", []byte(each), &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.defaults = yamlfile.Values(c)
	return r
}

// key is a possible key of a file.
type key struct {
	path string // NAME stands for any name
	of   reflect.Type
}

func (k key) section() string {
	top, _, _ := strings.Cut(k.path, ".")
	return top
}

// below returns the keys below a key, in the order of config.go. An app's ready has no port, which
// rules.go refuses.
func (k key) below() (all []key) {
	switch k.of.Kind() {
	case reflect.Pointer:
		return key{k.path, k.of.Elem()}.below()
	case reflect.Map:
		return []key{{k.path + ".NAME", k.of.Elem()}}
	case reflect.Struct:
		for f := range k.of.Fields() {
			tag := f.Tag.Get("yaml")
			if path := strings.TrimPrefix(k.path+"."+tag, "."); tag != "" && tag != "-" && path != "app.ready.port" {
				all = append(all, key{path, f.Type})
			}
		}
	}
	return all
}

// named returns the keys with an own line: all except those that have only names below them, and
// sections with keys.
func (k key) named() (all []key) {
	below := k.below()
	if k.of.Kind() != reflect.Map && strings.Contains(k.path, ".") || len(below) == 0 {
		all = append(all, k)
	}
	for _, b := range below {
		all = append(all, b.named()...)
	}
	return all
}

var top = key{of: reflect.TypeFor[Config]()}

// schema returns the JSON Schema of a key.
func (r reference) schema(k key) object {
	w, s := r.description[k.path], r.shape(k)
	about := cmp.Or(w.For, r.description[k.path+".NAME"].For, strings.TrimSpace(r.sections[k.path].About))
	about = regexp.MustCompile(`\s\(\[.*?\]\(.*?\)\)`).ReplaceAllString(about, "") // links do not work in editors
	s["description"] = strings.NewReplacer("\n", " ", "`", `"`).Replace(about)
	list := k.of == reflect.TypeFor[[]string]() || k.of == reflect.TypeFor[[]Reachable]()
	if len(w.Values) > 0 {
		s["enum"] = w.Values
	}
	if len(w.Examples) > 0 && !list {
		s["examples"] = w.Examples
	}
	if w.Min != nil {
		s["minimum"] = w.Min
	}
	if w.Max != nil {
		s["maximum"] = w.Max
	}
	if value := r.defaults[k.path]; value != "" && w.Default == "" && len(k.below()) == 0 {
		s["default"] = value
		if kind := s["type"]; kind == "integer" || kind == "number" || kind == "boolean" {
			s["default"] = json.RawMessage(value)
		}
	}
	return s
}

const aTime = `([0-9.]+(ns|us|µs|ms|s|m|h))+`

// shape returns the schema of a key's value. The keys come before the short form, because editors
// report errors about the first alternative.
func (r reference) shape(k key) object {
	text, below := object{"type": "string"}, k.below()
	texts := object{"type": "array", "items": text}
	switch k.of {
	case reflect.TypeFor[Duration](): // 0 is a number in YAML
		return object{"type": []string{"string", "integer"}, "pattern": "^(0|" + aTime + ")$", "minimum": 0, "maximum": 0}
	case reflect.TypeFor[TestTime]():
		return object{"type": []string{"string", "integer"}, "pattern": "^(0|[0-9.]+x|" + aTime + ")$", "minimum": 0, "maximum": 0}
	case reflect.TypeFor[Size]():
		return object{"type": []string{"string", "integer"}, "pattern": "^[0-9]+[kmgtKMGT]?$", "minimum": 0}
	case reflect.TypeFor[Prices]():
		price := object{"type": []string{"object", "array"}}
		return object{"anyOf": []object{text, {"type": "object", "additionalProperties": price}}}
	case reflect.TypeFor[Chain]():
		return object{"anyOf": []object{text, texts}}
	case reflect.TypeFor[[]Reachable]():
		text["examples"] = r.description[k.path].Examples
		return object{"type": "array", "items": object{"anyOf": []object{text, host()}}}
	case reflect.TypeFor[[]string]():
		if examples := r.description[k.path].Examples; len(examples) > 0 {
			text["examples"] = examples
		}
		return texts
	case reflect.TypeFor[PerRole]():
		text["examples"] = r.description[below[0].path].Examples
		return object{"anyOf": []object{r.properties(below), text}}
	case reflect.TypeFor[NoProgress]():
		return object{"anyOf": []object{r.properties(below), {"type": "integer"}}}
	case reflect.TypeFor[Publish]():
		return object{"anyOf": []object{r.properties(below), {"type": "string", "enum": r.description[below[0].path].Values}}}
	case reflect.TypeFor[Remote]():
		return object{"anyOf": []object{r.properties(below), text}}
	case reflect.TypeFor[Models]():
		return object{"anyOf": []object{r.properties(below), text, texts}}
	}
	switch kind := k.of.Kind(); {
	case kind == reflect.Map:
		names := object{"pattern": r.description[below[0].path].Pattern}
		return object{"type": "object", "propertyNames": names, "additionalProperties": r.schema(below[0])}
	case len(below) > 0:
		return r.properties(below)
	case strings.HasSuffix(k.path, ".env.NAME"):
		return object{"type": []string{"string", "number", "boolean"}}
	default:
		return object{"type": map[reflect.Kind]string{
			reflect.Int: "integer", reflect.Int64: "integer", reflect.Float64: "number",
			reflect.Bool: "boolean", reflect.String: "string",
		}[kind]}
	}
}

func (r reference) properties(keys []key) object {
	all := object{}
	for _, k := range keys {
		all[k.path[strings.LastIndex(k.path, ".")+1:]] = r.schema(k)
	}
	return object{"type": "object", "additionalProperties": false, "properties": all}
}

// document returns docs/config.schema.json, in the draft that YAML editors support best.
func (r reference) document(t *testing.T) []byte {
	t.Helper()
	s := r.properties(top.below())
	s["$schema"], s["title"] = "http://json-schema.org/draft-07/schema#", "Settings of abl, .abl/config.yaml"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReference compares the page and the schema with reference.yaml and the program.
func TestReference(t *testing.T) {
	r := readReference(t)
	known := map[string]bool{}
	for _, k := range top.below() {
		if s := r.sections[k.path]; s.About == "" || s.Example == "" {
			t.Errorf("section %s in reference.yaml: got about %.80q and example %.80q, want both",
				k.path, s.About, s.Example)
		}
		for _, k := range k.named() {
			known[k.path] = true
			if r.sections[k.section()].Keys[k.path].For == "" {
				t.Errorf("line for %s in reference.yaml: got none, want one", k.path)
			}
			if len(k.below()) == 0 && !strings.Contains(k.path+".", "NAME.") && k.path != "version" &&
				!slices.Contains(Settable(), k.path) {
				t.Errorf("variable for %s: got none, want one, as the page has it for every single value", k.path)
			}
			if value := r.defaults[k.path]; r.description[k.path].Default != "" && value != "" && value != "0" {
				t.Errorf("default for %s in reference.yaml: got %q, want none, since abl has the default %s",
					k.path, r.description[k.path].Default, value)
			}
		}
	}
	for path := range r.description {
		if !known[path] {
			t.Errorf("line for %s in reference.yaml: got one, want none, since abl has no such key", path)
		}
	}
	if t.Failed() {
		return
	}
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	intro, _, marked := strings.Cut(string(old), mark)
	if !marked {
		t.Fatalf("mark in %s: got none, want %q", page, mark)
	}
	files := map[string]string{page: intro + mark + r.markdown(), schemaFile: string(r.document(t))}
	for name, want := range files {
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(name); string(got) != want {
			diff := gocmp.Diff(string(got), want)
			t.Errorf("%s (-got +want); the head of reference.yaml has the command that updates it\n%s",
				filepath.Base(name), diff)
		}
	}
}

// find returns the object with the last part of a path; NAME matches any key that has the rest.
func find(in any, path []string) (object, string) {
	o, _ := in.(object)
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if name != path[0] && path[0] != "NAME" {
			continue
		}
		if len(path) == 1 {
			return o, name
		}
		if found, last := find(o[name], path[1:]); found != nil {
			return found, last
		}
	}
	return nil, ""
}

// TestSchemaAgreesWithLoad checks each key in its section's example: the schema accepts what abl
// accepts, and refuses unknown keys, unknown words and numbers out of bounds.
func TestSchemaAgreesWithLoad(t *testing.T) {
	r := readReference(t)
	schema := r.document(t)
	for _, top := range top.below() {
		for _, k := range top.named() {
			t.Run(k.path, func(t *testing.T) {
				var doc object
				if err := yamlfile.Decode("example", []byte(r.sections[top.path].Example), &doc); err != nil {
					t.Fatal(err)
				}
				in, name := find(doc, strings.Split(k.path, "."))
				if in == nil {
					t.Fatalf("example for %s: got no value of this key, want one in\n%s",
						k.path, r.sections[top.path].Example)
				}
				try := func(what string, taken, refused bool) {
					t.Helper()
					data, err := yamlfile.Marshal(doc)
					if err != nil {
						t.Fatal(err)
					}
					asJSON, err := audittest.FromYAML("example", data)
					if err != nil {
						t.Fatal(err)
					}
					l := &Loaded{Config: Default(), File: File, Sources: map[string]string{}}
					if err = decode(l, data); err == nil {
						err = validate(l)
					}
					wrong := audittest.Violations(schema, asJSON)
					fits := len(wrong) == 0
					if taken && err != nil || refused && (err == nil || fits) || err == nil && !fits {
						t.Errorf("%s: got error %v, violations %v, want an error for violations, accept %t, refuse %t",
							what, err, wrong, taken, refused)
					}
				}
				try("the example", true, false)
				if !strings.HasSuffix(k.path, "NAME") && k.path != "prices" {
					in["unknown_key"] = 1
					try("an unknown key beside it", false, true)
					delete(in, "unknown_key")
				}
				w, was := r.description[k.path], in[name]
				if w.Pattern != "" {
					in["Not A Name"] = was
					try("an unknown name", false, true)
					delete(in, "Not A Name")
				}
				for _, v := range w.Values {
					delete(in, map[string]string{"tcp": "ready", "command": "port"}[v]) // kinds of apps with fewer keys
					in[name] = v
					try(v, true, false)
				}
				if len(w.Values) > 0 {
					in[name] = "another"
					try("a word of none of its values", false, true)
				}
				if w.Min != nil {
					in[name] = *w.Min - 1
					try("too little", false, true)
					in[name] = *w.Min
					try("the least", true, false)
				}
				if w.Max != nil {
					in[name] = *w.Max + 1
					try("too much", false, true)
					in[name] = *w.Max
					try("the most", true, false)
				}
				for _, odd := range []any{
					"30m", "1h30m", "1.5h", "90s", "500ms", "soon", "3x", "0.5x", ".5x", "512m", "4G", "a-name",
					[]any{"P1.C1"}, []any{"a", "b"}, []any{}, object{}, 0, 1, 7, 1.5, 4096,
				} {
					kind := reflect.TypeOf(odd).Kind()
					if number := kind == reflect.Int || kind == reflect.Float64; !number || !textual(k) {
						in[name] = odd
						try(fmt.Sprint(odd), false, false)
					}
				}
			})
		}
	}
}

// textual reports whether a key is a text that YAML may read as a number.
func textual(k key) bool {
	return k.of.Kind() == reflect.String || k.of == reflect.TypeFor[Chain]() || k.of == reflect.TypeFor[Prices]()
}

// TestSettingsInTheRepositoryFit validates the settings in docs and examples against the schema.
func TestSettingsInTheRepositoryFit(t *testing.T) {
	texts := map[string]string{"whole": whole}
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(pages, "../../README.md", "../../examples/demo/.abl/config.yaml") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(name) == ".yaml" {
			texts[name] = string(data)
			continue
		}
		for i, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			texts[fmt.Sprintf("%s, block %d", filepath.Base(name), i+1)] = m[1]
		}
	}
	schema, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	fit := 0
	for name, text := range texts {
		if _, err := Load(project(t, map[string]string{File: text}), lookup(nil), nil); err != nil {
			if strings.HasPrefix(name, "config.md") {
				t.Errorf("%s: got error %v, want none", name, err)
			}
			continue // a scenario, or a part of the settings that needs others
		}
		doc, err := audittest.FromYAML(name, []byte(text))
		if wrong := audittest.Violations(schema, doc); err != nil || len(wrong) > 0 {
			t.Errorf("%s: got violations %v, error %v, want none", name, wrong, err)
		}
		fit++
	}
	if fit < len(top.below())+5 {
		t.Errorf("settings compared with the schema: got %d, want at least %d", fit, len(top.below())+5)
	}
}
