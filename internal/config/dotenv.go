package config

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/joho/godotenv"

	"abl/internal/hostfs"
)

const maxEnvBytes = 256 << 10

// ReadEnv returns the variables of the file at path, and warnings for the user. It expands nothing. It
// fails if the file is a link, not a regular file, or larger than 256 KiB. Errors wrap those of hostfs.
// Neither errors nor warnings contain a part of a value.
func ReadEnv(path string) (vars map[string]string, warnings []string, err error) {
	vars, _, warnings, err = readEnv(path)
	return vars, warnings, err
}

// readEnv is ReadEnv that also returns the line of each variable.
func readEnv(path string) (vars map[string]string, lines map[string]int, warnings []string, err error) {
	name := filepath.Base(path)
	data, err := hostfs.Read(filepath.Dir(path), name, maxEnvBytes)
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, nil, err
	}
	vars, lines, warnings, err = parse(name, data)
	mode, what := info.Mode().Perm(), "read"
	if mode&0o022 != 0 { // others could set settings of abl
		what = "changed"
	}
	if mode&0o066 != 0 && err == nil {
		warnings = append(warnings, fmt.Sprintf("%s can be %s by others (mode %04o): chmod 600 %s", name, what, mode, name))
	}
	return vars, lines, warnings, err
}

// statement matches an empty line, a comment, or a variable. A value in quotes may have several lines. Any
// other value ends at the end of the line or at " #".
var statement = regexp.MustCompile(`^(?:\s*?(?:#[^\n]*)?|[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=` +
	`(?:[ \t]*("(?s:\\.|[^"\\])*"|'(?s:\\.|[^'\\])*')[ \t]*(?:#[^\n]*)?|((?:[ \t]*[^"'\s][^\n]*?)??)[ \t]*([ \t]#[^\n]*)?))(?:\n|$)`)

// parse reads one statement at a time, so that a mistake has a line and does not affect the lines after
// it.
func parse(name string, data []byte) (vars map[string]string, lines map[string]int, warnings []string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, nil, nil, fmt.Errorf("cannot read %s: it is not UTF-8 text", name)
	}
	vars, lines = map[string]string{}, map[string]int{}
	for line := 1; text != ""; {
		m := statement.FindStringSubmatch(text)
		if m == nil || strings.Contains(strings.TrimSpace(m[3]), "\r") { // godotenv ends a line there
			return nil, nil, nil, fmt.Errorf("%s:%d: want NAME=value, with the whole value in closed quotes, or without quotes",
				name, line)
		}
		if key := m[1]; key != "" {
			if _, twice := vars[key]; twice {
				warnings = append(warnings, fmt.Sprintf("%s:%d: %s is set again; the last value counts", name, line, key))
			}
			if m[4] != "" {
				warnings = append(warnings, fmt.Sprintf(
					"%s:%d: the text after \" #\" is a comment; quote the value of %s if it is part of it", name, line, key))
			}
			vars[key], lines[key] = valueOf(m[2]+m[3]), line
		}
		line += strings.Count(m[0], "\n")
		text = text[len(m[0]):]
	}
	return vars, lines, warnings, nil
}

// valueOf reads a value with godotenv, which reads quotes and escapes like other tools. It replaces some
// characters by NUL first, because godotenv always expands "$", takes a quote after an escaped backslash
// for an escaped quote, and trims an escaped quote at the end. Outside of double quotes a backslash is
// literal.
func valueOf(written string) string {
	backslash, quote, escaped := `\`, `"`, `\"`
	if written = strings.TrimSpace(written); !strings.HasPrefix(written, `"`) {
		backslash, quote, escaped = `\\`, `\'`, `\'`
	}
	hidden := strings.NewReplacer("$", "\x00d", `\\`, "\x00b", escaped, "\x00q").Replace(written)
	vars, err := godotenv.Unmarshal("V=" + hidden)
	if err != nil {
		return ""
	}
	return strings.NewReplacer("\x00d", "$", "\x00b", backslash, "\x00q", quote).Replace(vars["V"])
}
