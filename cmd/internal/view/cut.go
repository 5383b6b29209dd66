package view

import "abl/internal/redact"

// cut shortens text to at most width columns and shows that it did.
func cut(text string, width int) string {
	used, fits := 0, 0 // columns; bytes that leave room for the mark
	for i, r := range text {
		if used+1 <= width {
			fits = i
		}
		if used += redact.Cells(r); used > width {
			if width < 1 {
				return ""
			}
			return text[:fits] + "…"
		}
	}
	return text
}
