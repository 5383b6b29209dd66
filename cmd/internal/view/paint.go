package view

// paint gives words their colour, or leaves them alone.
type paint bool

const noPaint paint = false

// in is text in the colour of a tone: the sixteen colours that every terminal
// has, so that the person's own scheme holds.
func (p paint) in(t tone, text string) string {
	code := map[tone]string{good: "32", bad: "31", warn: "33", quiet: "2"}[t]
	if !p || code == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
