package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/redact"
	"abl/internal/wording"
)

// help returns the help text of a command.
func help(c *Command, name string) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s - %s\n\nUsage:\n", name, c.Usage)
	if c.Run != nil {
		fmt.Fprintf(b, "  %s\n", strings.TrimSpace(name+" [flags] "+c.Args))
	}
	if len(c.Subs) > 0 {
		fmt.Fprintf(b, "  %s COMMAND [flags] [arguments]\n", name)
	}
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "\nAlso known as: %s\n", strings.Join(c.Aliases, ", "))
	}
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s", folded(c.Long))
	}
	for _, group := range groups() {
		var rows [][2]string
		for _, s := range c.Subs {
			if s.Group == group {
				rows = append(rows, [2]string{strings.TrimSpace(s.Name + " " + s.Args), s.Usage})
			}
		}
		section(b, cmp.Or(group, "Commands"), 26, rows)
	}
	section(b, "Flags", 26, flagRows(c.Flags))
	if c.Examples != "" {
		fmt.Fprintf(b, "\nExamples:\n  %s\n", strings.ReplaceAll(strings.TrimSpace(c.Examples), "\n", "\n  "))
	}
	section(b, "Exit codes", 3, codeRows(c.Codes))
	section(b, "Help topics", 26, c.topics)
	if len(c.topics) > 0 {
		fmt.Fprintf(b, "\n%s help TOPIC shows a topic.\n", name)
	}
	if len(c.Subs) > 0 {
		fmt.Fprintf(b, "\n%s COMMAND --help shows the arguments and flags of a command.\n", name)
	}
	return b.String()
}

// folded returns paragraphs in lines of at most 80 columns. Indented ones stay as they are.
func folded(text string) string {
	parts := strings.Split(strings.TrimSpace(text), "\n\n")
	for i, part := range parts {
		if !strings.Contains("\n"+part, "\n ") {
			parts[i] = filled(part, 80)
		}
	}
	return strings.Join(parts, "\n\n") + "\n"
}

// topics returns the topics of the program, exit-codes last.
func (app *App) topics() []Topic {
	codes := exit.Entries()
	if app.Root != nil && app.Root.Codes != nil {
		codes = app.Root.Codes
	}
	b := &strings.Builder{}
	section(b, "Exit codes", 3, codeRows(codes))
	text := strings.TrimPrefix(b.String(), "\n")
	if app.Root == nil {
		text += "\n" + folded(`After a failed run, fix the cause and run the same command again: it resumes where it
stopped, and never pays for a finished call again. After 3 and 4, change a spec, a setting
or a prompt first, or add --again. Commands with other meanings list them in their own
help. docs/exit-codes.md lists what to do for each code.`)
	}
	return append(slices.Clip(app.Topics), Topic{Name: "exit-codes", Usage: "what the exit codes mean", Text: text})
}

// codeRows returns one row per exit code.
func codeRows(codes []exit.Entry) (rows [][2]string) {
	for _, e := range codes {
		rows = append(rows, [2]string{fmt.Sprintf("%3d", e.Code), e.Meaning})
	}
	return rows
}

// flagRows returns one row per flag, --help last, with the values, the default and the variable.
func flagRows(all []Flag) (rows [][2]string) {
	for _, f := range append(all, Flag{Name: "help", Short: "h", Usage: "show this help"}) {
		left, more := "    --"+f.Name, []string{}
		if f.Short != "" {
			left = "-" + f.Short + ", --" + f.Name
		}
		if f.Open {
			more = append(more, strings.Join(f.Values, ", ")+", …")
		} else if len(f.Values) > 0 {
			more = append(more, wording.OneOf(f.Values))
		}
		if f.Default != "" {
			more = append(more, "default "+f.Default)
		}
		if f.Env != "" {
			more = append(more, "$"+f.Env)
		}
		if len(more) > 0 {
			f.Usage += " (" + strings.Join(more, "; ") + ")"
		}
		rows = append(rows, [2]string{strings.TrimRight(left+" "+f.Value, " "), f.Usage})
	}
	return rows
}

// section prints rows in two columns, 80 wide in all. It folds the right one. An entry that is too long
// for the left one gets a separate line.
func section(b *strings.Builder, title string, left int, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	indent := strings.Repeat(" ", left+4)
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, r := range rows {
		begin := fmt.Sprintf("  %-*s  ", left, r[0])
		if len(r[0]) > left {
			begin = "  " + r[0] + "\n" + indent
		}
		b.WriteString(begin + redact.Fold(r[1], 80-len(indent), indent) + "\n")
	}
}

// filled returns text in lines of at most that many columns.
func filled(text string, columns int) string {
	return redact.Fold(strings.Join(strings.Fields(text), " "), columns, "")
}
