package meter

import "bytes"

// bytesPerToken is about how long a token is.
const bytesPerToken = 4

// frames are about how many bytes of an event are none of the answer's own.
var frames = map[API]int64{Gemini: 180, Anthropic: 120, Responses: 300, Chat: 300}

// passing estimates what went by of an answer that may never tell its usage: a client
// can leave before it would, and OpenAI's clients need not ask for it at all.
type passing struct{ bytes, events int64 }

func (p *passing) note(piece []byte) {
	p.bytes += int64(len(piece))
	p.events += int64(bytes.Count(piece, []byte(fieldName)))
}

// Passed is about how many tokens went by: one for each event, and one for each four
// bytes that an event has beyond its usual frame.
func (m *Meter) Passed() int64 {
	return m.passed.events + max(m.passed.bytes-m.passed.events*frames[m.api], 0)/bytesPerToken
}
