package agent

import "strings"

// maxSaid bounds what is kept of an agent's words, in bytes.
const maxSaid = 1 << 20

// speech gathers what an agent says. What it says before it uses a tool is not
// its answer, unless it says nothing afterwards.
type speech struct {
	now    strings.Builder
	before string
}

func (s *speech) say(text string) {
	if left := maxSaid - s.now.Len(); len(text) > left {
		text = strings.ToValidUTF8(text[:left], "")
	}
	s.now.WriteString(text)
}

func (s *speech) pause() {
	if text := s.now.String(); strings.TrimSpace(text) != "" {
		s.before = text
	}
	s.now.Reset()
}

// Said implements Speaker.
func (s *speech) Said() string {
	if text := s.now.String(); strings.TrimSpace(text) != "" {
		return text
	}
	return s.before
}
