package cli

import (
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
)

// columns is how wide help may be.
const columns = 80

// The texts are templates of the library that have nothing to fill in.

func programHelp(app *App) string {
	if app.Root != nil {
		return commandHelp(app.root(), app.Name)
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s - %s\n\nUsage:\n  %s COMMAND [flags] [arguments]\n", app.Name, app.Usage, app.Name)
	if app.Long != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(app.Long))
	}
	left := leftColumn(rows(app.Commands, ""))
	for _, group := range []string{Starting, Running, Looking, Upkeep} {
		fmt.Fprintf(b, "\n%s:\n%s", group, table(rows(app.Commands, group), left))
	}
	fmt.Fprintf(b, "\nFlags:\n%s", flagHelp(app.root().Flags))
	fmt.Fprintf(b, "\nExit codes:\n%s", exit.Table())
	fmt.Fprintf(b, "\n%s COMMAND --help shows what a command takes.\n", app.Name)
	return b.String()
}

// rows are a row a command of a group; group "" is all of them.
func rows(commands []Command, group string) [][2]string {
	var all [][2]string
	for _, c := range commands {
		if !c.Hidden && (group == "" || c.Group == group) {
			all = append(all, [2]string{strings.TrimSpace(c.Name + " " + c.Args), c.Usage})
		}
	}
	return all
}

func commandHelp(c *Command, name string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s - %s\n\nUsage:\n", name, c.Usage)
	if c.Run != nil {
		fmt.Fprintf(b, "  %s\n", strings.TrimSpace(name+" [flags] "+c.Args))
	}
	if len(c.Subs) > 0 {
		fmt.Fprintf(b, "  %s COMMAND\n", name)
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso known as: %s\n", strings.Join(c.Aliases, ", "))
	}
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimSpace(c.Long))
	}
	if len(c.Subs) > 0 {
		subs := rows(c.Subs, "")
		fmt.Fprintf(b, "\nCommands:\n%s", table(subs, leftColumn(subs)))
	}
	fmt.Fprintf(b, "\nFlags:\n%s", flagHelp(c.Flags))
	if c.Examples != "" {
		fmt.Fprintf(b, "\nExamples:\n%s", examples(c.Examples))
	}
	codes := exit.Table()
	if c.Codes != nil {
		codes = exit.TableOf(c.Codes)
	}
	fmt.Fprintf(b, "\nExit codes:\n%s", codes)
	return b.String()
}

func examples(text string) string {
	var b strings.Builder
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		fmt.Fprintf(&b, "  %s\n", strings.TrimSpace(l))
	}
	return b.String()
}

// flagHelp is a row a flag, --help last.
func flagHelp(all []Flag) string {
	var rows [][2]string
	for _, f := range append(all, Flag{Name: "help", Short: "h", Usage: "show this help"}) {
		if f.Hidden {
			continue
		}
		left := "    --" + f.Name
		if f.Short != "" {
			left = "-" + f.Short + ", --" + f.Name
		}
		if f.Value != "" {
			left += " " + f.Value
		}
		rows = append(rows, [2]string{left, flagUsage(f)})
	}
	return table(rows, leftColumn(rows))
}

// flagUsage is what a flag does, with what else there is to know about it.
func flagUsage(f Flag) string {
	var more []string
	if f.Open {
		more = append(more, strings.Join(f.Values, ", ")+", …")
	} else if len(f.Values) > 0 {
		more = append(more, oneOf(f.Values))
	}
	if f.Multi {
		more = append(more, "may be repeated")
	}
	if f.Default != "" {
		more = append(more, "default "+f.Default)
	}
	if f.Env != "" {
		more = append(more, "$"+f.Env)
	}
	if len(more) == 0 {
		return f.Usage
	}
	return f.Usage + " (" + strings.Join(more, "; ") + ")"
}

// leftColumn is how wide the left column of rows is; overlong ones stand alone.
func leftColumn(rows [][2]string) int {
	left := 0
	for _, r := range rows {
		if len(r[0]) <= 28 {
			left = max(left, len(r[0]))
		}
	}
	return left
}

// table sets rows in two columns; the right one is wrapped.
func table(rows [][2]string, left int) string {
	indent := strings.Repeat(" ", 2+left+2)
	var b strings.Builder
	for _, r := range rows {
		b.WriteString("  " + r[0])
		gap := left + 2 - len(r[0])
		if gap < 2 {
			b.WriteString("\n" + indent)
			gap = 0
		}
		b.WriteString(strings.Repeat(" ", gap) + strings.Join(wrap(r[1], columns-len(indent)), "\n"+indent) + "\n")
	}
	return b.String()
}

// wrap breaks text into lines of at most width bytes where words allow it.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
