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

// ReadEnv returns the variables of the file at path, and warnings worth showing.
// Nothing is expanded. A link, a file of another kind or one larger than
// 256 KiB is refused. Errors wrap hostfs's kinds, and neither they nor the
// warnings hold any part of a value.
func ReadEnv(path string) (vars map[string]string, warnings []string, err error) {
	vars, _, warnings, err = readEnv(path)
	return vars, warnings, err
}

// readEnv is ReadEnv, and returns the line of each variable, too.
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
	if mode&0o022 != 0 { // what others put there would be settings of abl
		what = "changed"
	}
	if mode&0o066 != 0 && err == nil {
		warnings = append(warnings, fmt.Sprintf("%s can be %s by others (mode %04o): chmod 600 %s", name, what, mode, name))
	}
	return vars, lines, warnings, err
}

// statement is an empty line or a comment; or a variable with a value in quotes, which
// may go over several lines, or with one up to the end of the line or to " #".
var statement = regexp.MustCompile(`^(?:\s*?(?:#[^\n]*)?|[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.]*)[ \t]*=` +
	`(?:[ \t]*("(?s:\\.|[^"\\])*"|'(?s:\\.|[^'\\])*')[ \t]*(?:#[^\n]*)?|((?:[ \t]*[^"'\s][^\n]*?)??)[ \t]*([ \t]#[^\n]*)?))(?:\n|$)`)

// parse reads statement by statement, so that a mistake has a line and does not
// reach into the lines after it.
func parse(name string, data []byte) (vars map[string]string, lines map[string]int, warnings []string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\uFEFF"), "\r\n", "\n")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, nil, nil, fmt.Errorf("cannot read %s: it is not UTF-8 text", name)
	}
	vars, lines = map[string]string{}, map[string]int{}
	for line := 1; text != ""; {
		m := statement.FindStringSubmatch(text)
		if m == nil || strings.Contains(strings.TrimSpace(m[3]), "\r") { // which ends a line for godotenv
			return nil, nil, nil, fmt.Errorf("%s:%d: want NAME=value, with the value in quotes that are closed and followed by nothing, or in none", name, line)
		}
		if key := m[1]; key != "" {
			if _, twice := vars[key]; twice {
				warnings = append(warnings, fmt.Sprintf("%s:%d: %s is set again; the last one counts", name, line, key))
			}
			if m[4] != "" {
				warnings = append(warnings, fmt.Sprintf(
					"%s:%d: what follows \" #\" is taken for a comment; quote the value of %s if it is part of it", name, line, key))
			}
			vars[key], lines[key] = valueOf(m[2]+m[3]), line
		}
		line += strings.Count(m[0], "\n")
		text = text[len(m[0]):]
	}
	return vars, lines, warnings, nil
}

// valueOf gives a value to godotenv, whose reading of quotes and escapes other tools
// share, and hides from it behind NUL what it would get wrong: it expands "$", with no
// way to switch this off, takes a quote after an escaped backslash for an escaped one,
// and trims an escaped quote at the end. Outside of double quotes a backslash is one.
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
