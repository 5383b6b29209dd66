package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration written as 200ms or 1m30s.
type Duration time.Duration

// UnmarshalText reads what MarshalText writes.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("cannot read duration %q: want one as 200ms or 1m30s", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes the duration as 1m30s.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Size is a number of bytes, written as a plain number or with KB, MB or GB (powers of 1000).
type Size int64

// maxPrint keeps a slip of the pen from filling a disk.
const maxPrint Size = 16e9

// UnmarshalText reads what MarshalText writes and the units.
func (s *Size) UnmarshalText(text []byte) error {
	number, factor := strings.TrimSpace(string(text)), int64(1)
	for unit, f := range map[string]int64{"KB": 1e3, "MB": 1e6, "GB": 1e9} {
		if n, ok := strings.CutSuffix(number, unit); ok {
			number, factor = strings.TrimSpace(n), f
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > int64(maxPrint)/factor {
		return fmt.Errorf("cannot read size %q: want a number of bytes, or one as 200MB, up to 16GB", text)
	}
	*s = Size(n * factor)
	return nil
}

// MarshalText writes the number of bytes.
func (s Size) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(s), 10), nil }
