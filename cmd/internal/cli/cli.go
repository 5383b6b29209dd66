// Package cli parses command lines and runs commands. It accepts flags before and after arguments,
// and prints help, shell completion, a manual page, and errors with a hint. It is the only importer
// of the flag library.
package cli

import (
	"context"

	"abl/cmd/internal/exit"
)

// App is a program with its commands.
type App struct {
	Name     string
	Usage    string // one line, lower case
	Version  string
	Built    string // RFC 3339, or ""
	Long     string // description for help
	Commands []Command
	Topics   []Topic           // of `abl help TOPIC`, to which exit-codes is added
	Habits   map[string]string // words of other tools, and the command to use instead; "run N" matches any number
	Flags    []Flag            // of every command
	Root     *Command          // runs if no command is named; may be nil, and has no name
}

// Topic is a help topic that is not a command.
type Topic struct {
	Name  string
	Usage string // one line, lower case
	Text  string // paragraphs and lines as help shows them
}

// Groups of commands.
const (
	Starting    = "Getting started"
	Running     = "Running"
	Inspecting  = "Inspecting"
	Maintenance = "Maintenance"
)

// groups returns the groups in the order of help.
func groups() []string { return []string{"", Starting, Running, Inspecting, Maintenance} }

// Command is one command, or a group of them.
type Command struct {
	Name    string
	Aliases []string
	Group   string // Starting, Running, Inspecting or Maintenance
	Usage   string // one line, lower case
	// Args are the arguments as help shows them: "N", "[ROLE]" if optional, "[AGENT...]" for any number.
	Args     string
	Long     string
	Examples string   // one command line per line
	Values   []string // the valid values of an argument; empty allows any
	Open     bool     // an argument may have other values too
	Flags    []Flag
	Subs     []Command
	Codes    []exit.Entry                        // exit codes with other meanings than in `abl help exit-codes`
	Run      func(context.Context, *Input) error // nil for a group

	topics [][2]string // of the root: the rows of its help topics
}

// Flag is an option of a command.
type Flag struct {
	Name    string   // without dashes
	Short   string   // one letter, or ""
	Also    string   // other names, with spaces between them; help does not show them
	Usage   string   // one line, lower case
	Value   string   // placeholder in help, such as "FILE"; a flag without one is boolean
	Default string   // shown in help; String returns it if the flag is not set
	Env     string   // variable that sets it if the command line does not
	Values  []string // the valid values; empty allows any
	Open    bool     // other values are valid too
	To      any      // *bool, *string or *int that gets the value before Run; an int must be positive
}

// JSONFlag returns the flag of commands that print one document. Show and ShowTable read it.
func JSONFlag() Flag { return Flag{Name: "json", Usage: "one JSON document (docs/json.md)"} }
