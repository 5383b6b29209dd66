package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"abl/internal/hostfs"
)

const maxEnvBytes = 256 << 10

// Read returns the variables of the file at path, and warnings worth showing.
// Nothing is expanded. A link, a file of another kind or one larger than
// 256 KiB is refused. Errors wrap hostfs's kinds, and neither they nor the
// warnings hold any part of a value.
func ReadEnv(path string) (vars map[string]string, warnings []string, err error) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxEnvBytes)
	if err != nil {
		return nil, nil, err
	}
	name := filepath.Base(path)
	vars, warnings, err = parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	if warning := open(path); warning != "" {
		warnings = append(warnings, warning)
	}
	return vars, warnings, nil
}

// open says that others than its owner can read the file, or change it: what
// they put there would be settings of abl. "" is that they cannot.
func open(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return ""
	}
	what, mode := "", os.FileMode(st.Mode).Perm()
	switch {
	case mode&0o022 != 0:
		what = "changed"
	case mode&0o044 != 0:
		what = "read"
	default:
		return ""
	}
	name := filepath.Base(path)
	return fmt.Sprintf("%s can be %s by others (mode %04o): chmod 600 %s", name, what, mode, name)
}

// parse reads statement by statement, so that a mistake has a line and does not
// reach into the lines after it.
func parse(name string, data []byte) (map[string]string, []string, error) {
	text := strings.TrimPrefix(string(data), "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, nil, fmt.Errorf("cannot read %s: it is not UTF-8 text", name)
	}
	vars := make(map[string]string)
	var warnings []string
	for _, st := range statements(text) {
		key, value, err := st.read()
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, st.line, err)
		}
		if _, twice := vars[key]; twice {
			warnings = append(warnings, fmt.Sprintf("%s:%d: %s is set again; the last one counts", name, st.line, key))
		}
		if st.comment {
			warnings = append(warnings, fmt.Sprintf(
				"%s:%d: what follows \" #\" is taken for a comment; quote the value of %s if it is part of it", name, st.line, key))
		}
		vars[key] = value
	}
	return vars, warnings, nil
}
