package scaffold

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/detect"
	"abl/internal/toolchain"
	"abl/internal/wording"
	"abl/internal/yamlfile"
)

// settings writes the settings of a report for config.yaml: each value with its source, and open settings as
// comments.
type settings struct {
	detect.Report
	kind  string // asked for by the user, or found
	repo  string // the repository, relative to the project
	lines []string
}

// render returns the text for config.yaml.
func (s *settings) render() string {
	s.app()
	s.commands()
	s.rest()
	return strings.Join(s.lines, "\n")
}

func (s *settings) add(indent, text, comment string) {
	line := indent + text
	if comment != "" {
		line += "   # " + comment
	}
	s.lines = append(s.lines, line)
}

// clean returns a text of a repository as one short printable line.
func clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return wording.Cut(strings.Join(strings.Fields(text), " "), 160)
}

// reason returns the comment for a value: its source and a note.
func reason(f detect.Fact) string {
	var parts []string
	if f.From.File != "" {
		parts = append(parts, "from "+f.From.String())
	}
	if f.Note != "" {
		parts = append(parts, f.Note)
	}
	return clean(strings.Join(parts, "; "))
}

// scalar writes a text as a YAML value on one line.
func scalar(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	data, _ := yamlfile.Marshal(text) // a text can be written
	return strings.TrimSpace(string(data))
}

// written returns the value of a fact in YAML: a port is a number.
func written(f detect.Fact) string {
	if f.Key == "app.port" {
		return f.Value
	}
	return scalar(f.Value)
}

// fact returns the value that the repository shows for a setting.
func (s *settings) fact(key string) (detect.Fact, bool) {
	for _, f := range s.Facts {
		if f.Key == key {
			return f, true
		}
	}
	return detect.Fact{}, false
}

// started reports whether the report has all required values of an app section.
func (s *settings) started() bool {
	return s.kind != "" && s.Get("app.command") != "" && (s.kind == "command" || s.Get("app.port") != "")
}

// app writes the section of the app. If the command, or the port of a server, is unknown, the whole section
// is a comment, because abl would refuse it.
func (s *settings) app() {
	at := len(s.lines)
	s.add("", "app:", "")
	s.value("kind", s.kind)
	s.value("command", "")
	if s.kind != "command" {
		s.value("port", "")
	}
	if s.kind == "http" || s.kind == "tcp" {
		s.ready()
	}
	s.value("prepare", "")
	s.value("build", "")
	s.env("  ", "app.env.")
	s.services()
	if s.started() {
		return
	}
	for i := at; i < len(s.lines); i++ {
		s.lines[i] = "# " + s.lines[i]
	}
	why := []string{"# The app is not complete: set the open values, and remove the first # of each line."}
	s.lines = slices.Insert(s.lines, at, why...)
}

// value writes a key of the app, or the reason why it is open.
func (s *settings) value(key, asked string) {
	f, found := s.fact("app." + key)
	text := written(f)
	switch {
	case found:
		s.add("  ", key+": "+text, reason(f))
	case asked != "":
		s.add("  ", key+": "+asked, "as you asked")
	default:
		s.open("  ", "app."+key, key)
	}
}

// open writes the reason why a key is open, and its possible values.
func (s *settings) open(indent, key, name string) {
	for _, o := range s.Open {
		if o.Key != key {
			continue
		}
		s.add(indent, "# open: "+clean(o.Why), "")
		for _, f := range o.Choices {
			s.add(indent, "# "+name+": "+written(f), reason(f))
		}
		if len(o.Choices) == 0 {
			s.add(indent, "# "+name+": …", "")
		}
	}
}

// ready adds app.ready. Commands that compile first get a longer timeout.
func (s *settings) ready() {
	timeout := "60s"
	for _, slow := range []string{"go run", "build", "cargo ", "mvn ", "gradlew ", "migrate", "db:prepare"} {
		if strings.Contains(s.Get("app.command"), slow) {
			timeout = "180s"
		}
	}
	f, found := s.fact("app.ready.path")
	if found && s.kind == "http" {
		s.add("  ", fmt.Sprintf("ready: {path: %s, timeout: %s}", strconv.Quote(f.Value), timeout), reason(f))
		return
	}
	s.add("  ", "ready: {timeout: "+timeout+"}", "an open port: no file names a health check")
}

// env writes the variables below a key.
func (s *settings) env(indent, prefix string) {
	facts := s.Below(prefix)
	var missing []detect.Open
	for _, o := range s.Open {
		if strings.HasPrefix(o.Key, prefix) {
			missing = append(missing, o)
		}
	}
	if len(facts) > 0 {
		s.add(indent, "env:", "")
	} else if len(missing) > 0 {
		s.add(indent, "# env:", "")
	}
	for _, f := range facts {
		s.add(indent+"  ", strings.TrimPrefix(f.Key, prefix)+": "+scalar(f.Value), reason(f))
	}
	for _, o := range missing {
		s.add(indent+"  ", "# "+strings.TrimPrefix(o.Key, prefix)+": …", "open: "+clean(o.Why))
	}
}

// services adds app.services.
func (s *settings) services() {
	names := map[string]bool{}
	for _, f := range s.Below("app.services.") {
		name, _, _ := strings.Cut(strings.TrimPrefix(f.Key, "app.services."), ".")
		names[name] = true
	}
	if len(names) > 0 {
		s.add("  ", "services:", "")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key := "app.services." + name
		s.add("    ", name+":", "")
		image, _ := s.fact(key + ".image")
		s.add("      ", "image: "+scalar(image.Value), reason(image))
		s.env("      ", key+".env.")
		if files := s.Below(key + ".files."); len(files) > 0 && s.repo == "." {
			s.add("      ", "files:", "")
			for _, f := range files {
				s.add("        ", scalar(strings.TrimPrefix(f.Key, key+".files."))+": "+scalar(f.Value), reason(f))
			}
		}
		port, _ := s.fact(key + ".ready.port")
		s.add("      ", "ready: {port: "+port.Value+"}", reason(port))
	}
}

// commands writes the Builder's commands.
func (s *settings) commands() {
	s.add("", "", "")
	facts := s.Below("builder_commands.")
	if len(facts) == 0 {
		s.add("", "# Commands that the Builder runs by name until they succeed: abl-cmd health_check.", "")
		s.add("", "# open: no file defines a test or a lint command", "")
		s.add("", "# builder_commands:", "")
		s.add("", `#   health_check: {command: "…", description: "lint and unit tests"}`, "")
		return
	}
	s.add("", "builder_commands:", "")
	for _, f := range facts {
		name, note := strings.TrimPrefix(f.Key, "builder_commands."), f.Note
		f.Note = ""
		if f.From.File == "" {
			f.Note = "the commands below"
		}
		s.add("  ", fmt.Sprintf("%s: {command: %s, description: %s}", name, strconv.Quote(f.Value), strconv.Quote(note)),
			reason(f))
	}
}

// rest writes the network, the toolchain and the image.
func (s *settings) rest() {
	s.add("", "", "")
	if f, ok := s.fact("network.allow"); ok {
		s.add("", "# The only hosts that the Builder's tools and app.prepare reach, through the gateway.", "")
		s.add("", "network: {allow: ["+f.Value+"]}", reason(f))
		s.add("", "", "")
	}
	found := false
	for _, tool := range toolchain.Names() {
		if f, ok := s.fact("toolchain." + tool); ok {
			s.add("", fmt.Sprintf("toolchain: {%s: %q}", tool, f.Value), reason(f))
			found = true
		}
		for _, o := range s.Open {
			if o.Key == "toolchain."+tool {
				s.add("", "# open: "+clean(o.Why), "")
				s.add("", "# toolchain: {"+tool+`: "…"}`, "")
				found = true
			}
		}
	}
	if !found {
		s.add("", `# toolchain: {go: "1.27", node: "24", python: "3.13"}`,
			"languages in the image of the Builder and of the app")
	}
	const image = "  builder: {dockerfile: .abl/images/builder.Dockerfile}"
	if len(s.Packages) > 0 {
		s.add("", "images:", "")
		s.add("", image, "installs what "+clean(s.Packages[0].From.String())+" needs")
		return
	}
	s.add("", "# images:", "")
	s.add("", "# "+image, "when abl's image lacks a tool")
}

// dockerfile returns a Dockerfile that installs the packages of a report from the Debian release after
// abl's, which has newer compilers and interpreters.
func dockerfile(r detect.Report) []byte {
	var names []string
	for _, f := range r.Packages {
		names = append(names, f.Value)
	}
	return fmt.Appendf(nil, `# The image of the Builder and of the app: abl's own with what this repository needs, from
# Debian 13. abl init found these packages by %s.
ARG ABL_IMAGE
FROM ${ABL_IMAGE}
RUN . /etc/os-release \
 && for file in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do \
      if [ -f "$file" ]; then sed "s/${VERSION_CODENAME}/trixie/g" "$file" > "/etc/apt/sources.list.d/trixie.${file##*.}"; fi; \
    done \
 && apt-get -o Acquire::Retries=3 update \
 && DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y --no-install-recommends \
    %s \
 && rm -rf /var/lib/apt/lists/*
`, clean(r.Packages[0].From.String()), strings.Join(names, " "))
}
