package gateway

import "bytes"

// mask blots a key out of an answer that passes in pieces, at once and without
// changing its length. A provider has no reason to say the key; one that does
// shall not say it to an agent.
type mask struct {
	key  []byte
	held []byte // the end of what came, while it may be the key's beginning
}

// pass returns what can go on of what was held and p. It may change p.
func (m *mask) pass(p []byte) []byte {
	if len(m.key) == 0 {
		return p
	}
	if len(m.held) > 0 {
		p = append(m.held, p...)
	}
	for rest := p; ; {
		at := bytes.Index(rest, m.key)
		if at < 0 {
			break
		}
		for i := range m.key {
			rest[at+i] = '*'
		}
		rest = rest[at+len(m.key):]
	}
	n := begun(p, m.key)
	m.held = append([]byte(nil), p[len(p)-n:]...)
	return p[:len(p)-n]
}

// rest returns what is still held when the answer has ended.
func (m *mask) rest() []byte { return m.held }

// begun is the length of the longest end of p that the key begins with.
func begun(p, key []byte) int {
	for n := min(len(p), len(key)-1); n > 0; n-- {
		if p[len(p)-n] == key[0] && bytes.HasPrefix(key, p[len(p)-n:]) {
			return n
		}
	}
	return 0
}
