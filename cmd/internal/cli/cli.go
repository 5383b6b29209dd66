// Package cli turns a command line into the call of one command: flags before
// or after arguments, help that teaches, errors in one sentence with a hint,
// shell completion, a manual page. It is the one importer of the flag library, so that the
// files of the commands are free of it. What a command does is not in it.
package cli

import (
	"context"

	"abl/cmd/internal/exit"
)

// App is a program: its commands, and what holds for all of them.
type App struct {
	Name     string
	Usage    string // one line, lower case
	Version  string
	Built    string // RFC 3339, or ""
	Long     string // for help: what the program does
	Commands []Command
	Topics   []Topic           // of `abl help TOPIC`; exit-codes is added to them
	Habits   map[string]string // by a word that users of other tools type, the command to use instead; "run N" is any number
	Flags    []Flag            // of every command
	Root     *Command          // of a program that does something without the name of a command; it has no name
}

// Topic is a subject of help that is not a command.
type Topic struct {
	Name  string
	Usage string // one line, lower case
	Text  string // paragraphs and lines as help shows them
}

// Groups of commands.
const (
	Starting = "Getting started"
	Running  = "Running"
	Looking  = "Looking"
	Upkeep   = "Upkeep"
)

// groups are in the order in which help shows them.
func groups() []string { return []string{"", Starting, Running, Looking, Upkeep} }

// Command is one command, or a group of them.
type Command struct {
	Name    string
	Aliases []string
	Group   string // Starting, Running, Looking or Upkeep
	Usage   string // one line, lower case
	// Args are as help shows them: "N", "[ROLE]" for one that may be left out, "[AGENT...]" for
	// any number.
	Args     string
	Long     string
	Examples string   // one command line each, without indentation
	Values   []string // the only ones of an argument; empty is any
	Open     bool     // an argument takes other values than these too
	Flags    []Flag
	Subs     []Command
	Codes    []exit.Entry                        // what exit codes mean here; nil for those of `abl help exit-codes`
	Run      func(context.Context, *Input) error // nil for a group

	topics [][2]string // of a program's root: the rows of its help topics
}

// Flag is an option of a command.
type Flag struct {
	Name    string   // without dashes
	Short   string   // one letter, or ""
	Usage   string   // one line, lower case
	Value   string   // placeholder in help, "FILE"; "" makes it a yes-or-no flag
	Default string   // in help, and what String gives when it is not set
	Env     string   // variable that sets it when the command line does not
	Values  []string // the only values that it takes; empty is any
	Open    bool     // it takes other values than these too
	Hidden  bool     // from help and completion
}
