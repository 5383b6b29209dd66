package view

// cells is how many columns a character may take. It guesses high, since a
// status that is cut early does no harm and one that wraps does.
func cells(r rune) int {
	if r < 0x1100 || r == '…' {
		return 1
	}
	return 2
}

// cut shortens text to at most width columns and shows that it did.
func cut(text string, width int) string {
	used, fits := 0, 0 // columns; bytes that leave room for the mark
	for i, r := range text {
		if used+1 <= width {
			fits = i
		}
		if used += cells(r); used > width {
			if width < 1 {
				return ""
			}
			return text[:fits] + "…"
		}
	}
	return text
}
