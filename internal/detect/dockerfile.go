package detect

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"
)

// instruction is one of a Dockerfile, its continued lines joined.
type instruction struct {
	word string // in capitals
	args string
	line int
}

// words returns the arguments in the JSON form, or nil in the shell form.
func (i instruction) words() (words []string) {
	if json.Unmarshal([]byte(i.args), &words) != nil {
		return nil
	}
	return words
}

// command returns the arguments of CMD or ENTRYPOINT as a shell command.
func (i instruction) command() string {
	if words := i.words(); words != nil {
		return shell(words)
	}
	return i.args
}

var plainWord = lazyregexp.New(`^[A-Za-z0-9_@%+=:,./$*{}\[\]-]+$`)

// shell joins words to a command line, and takes "sh -c TEXT" apart.
func shell(words []string) string {
	if len(words) == 3 && (path.Base(words[0]) == "sh" || path.Base(words[0]) == "bash") && strings.HasPrefix(words[1],
		"-") &&
		strings.HasSuffix(words[1], "c") {
		return strings.TrimSpace(words[2])
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if !plainWord().MatchString(word) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// parseDockerfile splits a Dockerfile into its instructions.
func parseDockerfile(text string) (all []instruction) {
	heredoc := ""
	open := false
	for n, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if heredoc != "" {
			if trimmed == heredoc {
				heredoc = ""
			}
			continue
		}
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		more := strings.HasSuffix(trimmed, "\\")
		trimmed = strings.TrimSpace(strings.TrimSuffix(trimmed, "\\"))
		if open {
			last := &all[len(all)-1]
			last.args = strings.TrimSpace(last.args + " " + trimmed)
		} else {
			word, args, _ := strings.Cut(trimmed, " ")
			all = append(all, instruction{strings.ToUpper(word), strings.TrimSpace(args), n + 1})
			if m := heredocs().FindStringSubmatch(trimmed); m != nil && (strings.EqualFold(word, "RUN") ||
				strings.EqualFold(word, "COPY")) {
				heredoc = m[1]
			}
		}
		open = more
	}
	return all
}

var heredocs = lazyregexp.New(`<<-?["']?([A-Za-z_]+)["']?`)

// image is what the last stage of a Dockerfile says.
type image struct {
	file       string // path in the tree
	from       string // the image that the last stage is based on
	fromLine   int
	bases      []instruction // FROM of every stage
	cmd, entry instruction
	ports      []Fact
	env        map[string]Fact
	health     instruction
	workdir    string
	runs       []instruction // RUN of every stage
}

var variables = lazyregexp.New(`\$\{?([A-Za-z_][A-Za-z0-9_]*)(?::?-([^}]*))?\}?`)

// expand puts values in the place of variables. Unknown ones without a default stay.
func expand(text string, values map[string]string) string {
	return variables().ReplaceAllStringFunc(text, func(m string) string {
		part := variables().FindStringSubmatch(m)
		if v := values[part[1]]; v != "" {
			return v
		}
		if part[2] != "" {
			return part[2]
		}
		return m
	})
}

// readImage reads a Dockerfile.
func readImage(file, text string) image {
	img := image{file: file, env: map[string]Fact{}}
	values := map[string]string{}
	names := map[string]string{}
	for _, i := range parseDockerfile(text) {
		from := Source{File: file, Place: strconv.Itoa(i.line)}
		switch i.word {
		case "ARG":
			if name, value, ok := strings.Cut(i.args, "="); ok {
				values[name] = strings.Trim(value, `"'`)
			}
		case "FROM":
			i.args = expand(regexp.MustCompile(`--\S+\s+`).ReplaceAllString(i.args, ""), values)
			words := strings.Fields(i.args + " ")
			if len(words) == 0 {
				continue
			}
			keep := image{file: file, bases: append(img.bases, i), env: map[string]Fact{}, runs: img.runs}
			keep.from, keep.fromLine = words[0], i.line
			if names[words[0]] != "" {
				keep.from = names[words[0]]
			}
			if len(words) == 3 {
				names[words[2]] = keep.from
			}
			img = keep
		case "ENV":
			for name, value := range pairs(i.args) {
				value = expand(value, values)
				values[name] = value
				img.env[name] = Fact{Key: "app.env." + name, Value: value, From: from}
			}
		case "EXPOSE":
			for word := range strings.FieldsSeq(expand(i.args, values)) {
				port, protocol, _ := strings.Cut(word, "/")
				if _, err := strconv.Atoi(port); err == nil && protocol != "udp" {
					img.ports = append(img.ports, Fact{Key: "app.port", Value: port, From: from})
				}
			}
		case "WORKDIR":
			img.workdir = path.Join(img.workdir, expand(i.args, values))
			if path.IsAbs(i.args) {
				img.workdir = path.Clean(i.args)
			}
		case "CMD":
			img.cmd = i
		case "ENTRYPOINT":
			img.entry, img.cmd = i, instruction{}
		case "HEALTHCHECK":
			img.health = i
		case "RUN":
			img.runs = append(img.runs, i)
		}
	}
	return img
}

var pair = lazyregexp.New(`([A-Za-z_][A-Za-z0-9_]*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)`)

// pairs reads the arguments of ENV: NAME=VALUE …, or NAME VALUE.
func pairs(args string) map[string]string {
	all := map[string]string{}
	if name, value, ok := strings.Cut(args, " "); ok && !strings.Contains(name, "=") {
		return map[string]string{name: strings.TrimSpace(value)}
	}
	for _, m := range pair().FindAllStringSubmatch(args, -1) {
		all[m[1]] = strings.Trim(m[2], `"'`)
	}
	return all
}

var probed = lazyregexp.New(`https?://(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\])(?::(\d+` +
	`|\$\{?[A-Z_]+(?::-\d+)?\}?))?(/[^\s"'|;)\\]*)?`)

// probe returns the path of the HTTP request in a health check, "" if it makes none.
func probe(command string) string {
	m := probed().FindStringSubmatch(command)
	if m == nil || m[2] == "/" {
		return ""
	}
	return m[2]
}

// baseOf returns the name and the version of an image: "node", "22.1".
func baseOf(ref string) (name, version string) {
	ref, _, _ = strings.Cut(ref, "@")
	name, tag, _ := strings.Cut(path.Base(ref), ":")
	version = regexp.MustCompile(`^v?\d+(?:\.\d+)*`).FindString(tag)
	return name, version
}

func line(n int) string { return fmt.Sprint(n) }
