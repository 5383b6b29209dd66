package cli

import (
	"context"
	"fmt"
	"strings"

	"abl/cmd/internal/exit"
)

// Manual returns the command that prints the manual page: the help of all commands on one page.
func Manual() Command {
	return Command{
		Name:     "man",
		Group:    Maintenance,
		Usage:    "print the manual page",
		Long:     "The page has every command that help shows, for man and mandoc to render.",
		Examples: "abl man | man -l -\nabl man > ~/.local/share/man/man1/abl.1",
		Run: func(_ context.Context, in *Input) error {
			_, err := fmt.Fprint(in.Stdout, manual(in.program))
			return err
		},
	}
}

// manual returns the page in man(7) format.
func manual(app *App) string {
	b := &strings.Builder{}
	root := app.root()
	date, _, _ := strings.Cut(app.Built, "T")
	fmt.Fprintf(b, ".TH %s 1 \"%s\" \"%s\"\n", strings.ToUpper(app.Name), date, roff(app.Name+" "+app.Version))
	fmt.Fprintf(b, ".SH NAME\n%s \\- %s\n", app.Name, roff(app.Usage))
	fmt.Fprintf(b, ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[flags] [arguments]\n", app.Name)
	fmt.Fprintf(b, ".SH DESCRIPTION\n%s\n.PP\nFlags of every command:\n", paragraphs(app.Long))
	entries(b, flagRows(root.Flags))
	b.WriteString(".SH COMMANDS\n")
	commandPages(b, app.Name, root.Subs)
	for _, t := range app.Topics {
		fmt.Fprintf(b, ".SH %s\n%s\n", strings.ToUpper(t.Name), preformatted(t.Text))
	}
	b.WriteString(".SH EXIT STATUS\n")
	entries(b, codeRows(exit.Entries()))
	return b.String()
}

// commandPages prints commands in the order of help, with their subcommands.
func commandPages(b *strings.Builder, above string, all []Command) {
	for _, group := range groups() {
		for _, c := range all {
			if c.Group == group {
				commandPage(b, above+" "+c.Name, c)
			}
		}
	}
}

func commandPage(b *strings.Builder, name string, c Command) {
	fmt.Fprintf(b, ".SS %s\n%s.\n", roff(strings.TrimSpace(name+" "+c.Args)), roff(filled(c.Usage, 66)))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(b, "Also known as %s.\n", strings.Join(c.Aliases, ", "))
	}
	if c.Long != "" {
		fmt.Fprintf(b, ".PP\n%s\n", paragraphs(c.Long))
	}
	rows := flagRows(c.Flags)
	entries(b, rows[:len(rows)-1]) // without --help, which every command has
	if c.Examples != "" {
		fmt.Fprintf(b, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", roff(c.Examples))
	}
	if c.Codes != nil {
		b.WriteString(".PP\nExit codes:\n")
		entries(b, codeRows(c.Codes))
	}
	commandPages(b, name, c.Subs)
}

// paragraphs returns text as paragraphs. The formatter fills all but indented lines.
func paragraphs(text string) string {
	return strings.ReplaceAll(roff(strings.TrimSpace(text)), "\n\n", "\n.PP\n")
}

// preformatted returns text as paragraphs, and keeps those with indented lines as they are.
func preformatted(text string) string {
	var all []string
	for part := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.Contains("\n"+part, "\n ") {
			part = ".nf\n" + roff(part) + "\n.fi"
		} else {
			part = roff(part)
		}
		all = append(all, part)
	}
	return strings.Join(all, "\n.PP\n")
}

// entries prints rows as a list of names with descriptions.
func entries(b *strings.Builder, rows [][2]string) {
	for _, r := range rows {
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(r[0])), roff(filled(r[1], 66)))
	}
}

// escapes escapes roff syntax, and replaces characters that terminals without UTF-8 drop.
var escapes = strings.NewReplacer(`\`, `\e`, "-", `\-`, "→", `\(->`, "…", `\&...`, "\n.", "\n\\&.", "\n'", "\n\\&'")

// roff escapes text for the formatter.
func roff(text string) string { return escapes.Replace("\n" + text)[1:] }
