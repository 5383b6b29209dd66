package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Kind is the key in the file that makes a step what it is: say, write,
// append, delete, run, sleep, print, raw or report; "" for a step with none or
// more than one of them.
func (s Step) Kind() string {
	if set := s.kinds(); len(set) == 1 {
		return set[0]
	}
	return ""
}

func (s Step) kinds() []string {
	var set []string
	for _, k := range []struct {
		name string
		has  bool
	}{
		{"say", s.Say != nil},
		{"write", s.Write != ""},
		{"append", s.Append != ""},
		{"delete", s.Delete != ""},
		{"run", s.Run != ""},
		{"sleep", s.Sleep != 0},
		{"print", s.Print != 0},
		{"raw", s.Raw != nil},
		{"report", s.Report != nil},
	} {
		if k.has {
			set = append(set, k.name)
		}
	}
	return set
}

// Path is the file that a write, append or delete step is about.
func (s Step) Path() string { return s.Write + s.Append + s.Delete }

// Perm is the permission bits that a write step gives its file, 0 to leave them.
func (s Step) Perm() uint32 {
	bits, _ := strconv.ParseUint(s.Mode, 8, 32) // check has read it before
	return uint32(bits)
}

func (s Step) check() error {
	set := s.kinds()
	if len(set) != 1 {
		return fmt.Errorf("a step does one thing of say, write, append, delete, run, sleep, print, raw and report, this one has %d: %s",
			len(set), strings.Join(set, ", "))
	}
	if err := s.checkExtras(set[0]); err != nil {
		return err
	}
	switch {
	case s.Path() != "" && !local(s.Path()):
		return fmt.Errorf("%s: path %q leaves the workspace", set[0], s.Path())
	case s.From != "" && !local(s.From):
		return fmt.Errorf("from: path %q leaves the scenario's folder", s.From)
	case s.From != "" && s.Text != "":
		return fmt.Errorf("text and from exclude each other")
	case s.Sleep < 0 || s.Sleep > Duration(24*time.Hour):
		return fmt.Errorf("sleep: want at most 24h")
	case s.Print < 0 || s.Print > maxPrint:
		return fmt.Errorf("print: want at most 16GB")
	case s.Raw != nil && strings.Contains(*s.Raw, "\n"):
		return fmt.Errorf("raw: want one line")
	}
	return nil
}

// checkExtras refuses a key that means nothing for this kind of step.
func (s Step) checkExtras(kind string) error {
	if bits, err := strconv.ParseUint(s.Mode, 8, 32); s.Mode != "" && (err != nil || bits > 0o777) {
		return fmt.Errorf("mode: want permission bits in octal as \"0755\", got %q", s.Mode)
	}
	for _, extra := range []struct {
		name, with string
		has        bool
	}{
		{"text", "write append", s.Text != ""},
		{"from", "write append", s.From != ""},
		{"mode", "write", s.Mode != ""},
		{"expect", "run", s.Expect != nil},
	} {
		if extra.has && !strings.Contains(extra.with, kind) {
			return fmt.Errorf("%s: does not go with %s", extra.name, kind)
		}
	}
	return nil
}
