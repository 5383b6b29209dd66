package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// printLine is the length of the lines of a print step, line end included.
const printLine = 1024

// print prints size bytes as numbered output records, so that a reader can tell
// whether one is missing. Less than one line's worth is printed as one line.
func (p *Player) print(size int64) {
	for n := int64(1); size > 0; n++ {
		length := int64(printLine)
		if size < 2*printLine {
			length = size // the last one takes what is left
		}
		p.line(printed(n, int(length)-1))
		size -= length
	}
}

// printed is an output record of the given length, or as short as one can be.
func printed(n int64, length int) []byte {
	text := fmt.Sprintf("line %012d ", n)
	frame, err := json.Marshal(Record{Type: RecordOutput, Text: text})
	if err != nil {
		return nil
	}
	fill := strings.Repeat("x", max(0, length-len(frame)))
	return []byte(strings.Replace(string(frame), text, text+fill, 1))
}
