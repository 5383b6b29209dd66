package app

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"

	"abl/internal/redact"
	"abl/internal/wording"
	"abl/roles"
)

// How much of an app's last output is shown.
const (
	lastLines = 20
	lastBytes = 16 << 10
	maxLast   = 300 // characters per line
)

// lastPrinted returns the last lines of the first output file that has any, without secrets.
func lastPrinted(safe *redact.Sanitizer, dir string, names ...string) string {
	for _, name := range names {
		var lines []string
		for line := range bytes.Lines(endOf(filepath.Join(dir, name), lastBytes)) {
			if text := strings.TrimRight(safe.Line(strings.ToValidUTF8(string(line), "\uFFFD")), " "); text != "" {
				lines = append(lines, wording.Cut(text, maxLast))
			}
		}
		if len(lines) > 0 {
			return strings.Join(lines[max(len(lines)-lastLines, 0):], "\n")
		}
	}
	return ""
}

// endOf returns the last whole lines of an output, at most most bytes. It returns nil if the
// output cannot be read: the failure itself is known without it.
func endOf(path string, most int64) []byte {
	f, err := roles.OpenOutput(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	from := max(end-most, 0)
	data, rerr := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil || rerr != nil {
		return nil
	}
	if from > 0 {
		_, data, _ = bytes.Cut(data, []byte("\n"))
	}
	return data
}

// withPrinted returns a failure in one sentence, and the output before it on the lines below.
func withPrinted(failed, printed string) string {
	if failed == "" {
		return ""
	}
	return strings.TrimSuffix(failed+"\n"+printed, "\n")
}
