package roles

import "bytes"

func splitLines(data []byte) [][]byte { return bytes.Split(bytes.TrimSpace(data), []byte("\n")) }

func splitAfterLines(data []byte) [][]byte {
	if len(data) == 0 {
		return nil
	}
	parts := bytes.SplitAfter(data, []byte("\n"))
	if len(parts[len(parts)-1]) == 0 {
		parts = parts[:len(parts)-1]
	}
	return parts
}

func trimNewline(part []byte) ([]byte, bool) {
	if n := len(part); n > 0 && part[n-1] == '\n' {
		return part[:n-1], true
	}
	return part, false
}
