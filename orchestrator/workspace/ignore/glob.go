package ignore

import "strings"

// glob is a compiled pattern, a list of steps that a set of states runs along.
type glob []step

type step struct {
	op    op
	b     byte
	class *class
	skip  int // for anyDirs: how many steps "**/" may skip when it stands for nothing
}

type op int

const (
	exact   op = iota // this byte
	one               // any byte but /
	stars             // any run of bytes but /
	anyDirs           // any run of bytes, / too
	inClass
	never // a broken pattern: matches nothing
)

// compileGlob reads a pattern. With paths set, * and ? stop at a slash and **
// between slashes does not.
func compileGlob(p string, paths bool) glob {
	var g glob
	for i := 0; i < len(p); {
		var s step
		s, i = compileStep(p, i, paths)
		g = append(g, s)
	}
	return g
}

func compileStep(p string, i int, paths bool) (step, int) {
	switch p[i] {
	case '*':
		return compileStars(p, i, paths)
	case '?':
		return step{op: one}, i + 1
	case '[':
		c, next, ok := compileClass(p, i+1)
		if !ok {
			return step{op: never}, len(p)
		}
		return step{op: inClass, class: c}, next
	case '\\':
		if i+1 == len(p) {
			return step{op: never}, len(p)
		}
		return step{op: exact, b: p[i+1]}, i + 2
	}
	return step{op: exact, b: p[i]}, i + 1
}

func compileStars(p string, i int, paths bool) (step, int) {
	next := i
	for next < len(p) && p[next] == '*' {
		next++
	}
	if !paths {
		return step{op: anyDirs}, next
	}
	atStart := i == 0 || p[i-1] == '/'
	rest := p[next:]
	if next-i < 2 || !atStart || rest != "" && rest[0] != '/' && !strings.HasPrefix(rest, `\/`) {
		return step{op: stars}, next
	}
	s := step{op: anyDirs}
	if strings.HasPrefix(rest, "/") {
		s.skip = 2
	}
	return s, next
}

// match runs all states at once over the text, so no pattern can make it back-track.
func (g glob) match(text string) bool {
	now := make([]bool, len(g)+1)
	then := make([]bool, len(g)+1)
	g.enter(now, 0)
	for i := 0; i < len(text); i++ {
		clear(then)
		alive := false
		for s, on := range now[:len(g)] {
			if on && g.advance(then, s, text[i]) {
				alive = true
			}
		}
		if !alive {
			return false
		}
		now, then = then, now
	}
	return now[len(g)]
}

// enter puts the state and those reached from it without a byte into the set.
func (g glob) enter(set []bool, s int) {
	for !set[s] {
		set[s] = true
		if s == len(g) || g[s].op != stars && g[s].op != anyDirs {
			return
		}
		if g[s].skip > 0 {
			g.enter(set, s+g[s].skip)
		}
		s++
	}
}

func (g glob) advance(set []bool, s int, b byte) bool {
	switch st := g[s]; st.op {
	case exact:
		if st.b != b {
			return false
		}
	case one:
		if b == '/' {
			return false
		}
	case inClass:
		if b == '/' || !st.class.has(b) {
			return false
		}
	case stars:
		if b == '/' {
			return false
		}
		g.enter(set, s)
		return true
	case anyDirs: // once it stands for something, the slash after it must follow
		set[s] = true
		g.enter(set, s+1)
		return true
	default:
		return false
	}
	g.enter(set, s+1)
	return true
}
