package ignore

import "strings"

// class is a bracket expression, one bit a byte.
type class [256]bool

func (c *class) has(b byte) bool { return c[b] }

var named = map[string]func(byte) bool{
	"alnum":  func(b byte) bool { return letter(b) || digit(b) },
	"alpha":  letter,
	"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
	"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
	"digit":  digit,
	"graph":  func(b byte) bool { return b > ' ' && b < 0x7f },
	"lower":  func(b byte) bool { return b >= 'a' && b <= 'z' },
	"print":  func(b byte) bool { return b >= ' ' && b < 0x7f },
	"punct":  func(b byte) bool { return b > ' ' && b < 0x7f && !letter(b) && !digit(b) },
	"space":  func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' },
	"upper":  func(b byte) bool { return b >= 'A' && b <= 'Z' },
	"xdigit": func(b byte) bool { return digit(b) || b|0x20 >= 'a' && b|0x20 <= 'f' },
}

func letter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func digit(b byte) bool  { return b >= '0' && b <= '9' }

// compileClass reads a bracket expression whose [ stands before i. It is not
// ok when the expression does not end or names an unknown class.
func compileClass(p string, i int) (*class, int, bool) {
	c := new(class)
	negated := i < len(p) && (p[i] == '!' || p[i] == '^')
	if negated {
		i++
	}
	var last byte // begins a range; 0 when a range cannot begin here
	for first := true; ; first = false {
		if i >= len(p) {
			return nil, 0, false
		}
		if p[i] == ']' && !first {
			break
		}
		next, end, ok := c.item(p, i, last)
		if !ok {
			return nil, 0, false
		}
		last, i = end, next
	}
	if negated {
		for b := range c {
			c[b] = !c[b]
		}
	}
	return c, i + 1, true
}

// item adds one member, range or named class and gives back where the next
// begins and which byte may begin a range.
func (c *class) item(p string, i int, last byte) (next int, end byte, ok bool) {
	switch {
	case p[i] == '-' && last != 0 && i+1 < len(p) && p[i+1] != ']':
		return c.rangeTo(p, i+1, last)
	case strings.HasPrefix(p[i:], "[:"):
		return c.name(p, i)
	case p[i] == '\\':
		if i++; i == len(p) {
			return 0, 0, false
		}
	}
	c[p[i]] = true
	return i + 1, p[i], true
}

func (c *class) rangeTo(p string, i int, from byte) (next int, end byte, ok bool) {
	if p[i] == '\\' {
		if i++; i == len(p) {
			return 0, 0, false
		}
	}
	for b := int(from); b <= int(p[i]); b++ {
		c[b] = true
	}
	return i + 1, 0, true
}

func (c *class) name(p string, i int) (next int, end byte, ok bool) {
	end2 := strings.IndexByte(p[i+2:], ']')
	if end2 < 0 {
		return 0, 0, false
	}
	word := p[i+2 : i+2+end2]
	if !strings.HasSuffix(word, ":") { // not a named class: the [ stands for itself
		c['['] = true
		return i + 1, '[', true
	}
	is, known := named[strings.TrimSuffix(word, ":")]
	if !known {
		return 0, 0, false
	}
	for b := range c {
		if is(byte(b)) {
			c[b] = true
		}
	}
	return i + 2 + end2 + 1, 0, true
}
