package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"abl"
)

const (
	skillFile  = ".claude/skills/abl/SKILL.md"
	agentsFile = "AGENTS.md"
)

// Guide returns the page for coding agents, with what abl found in a repository.
func Guide(found string) string {
	text, _ := fs.ReadFile(abl.Template(), "guide.md") // cannot fail: it is embedded
	return strings.Replace(string(text), "@FACTS@\n", found, 1)
}

// skill is the page as a skill of a coding agent.
func skill() File {
	const head = `---
name: abl
description: Set up and run abl in this repository. Use it to write .abl/config.yaml, .abl/project.md and the phase specs in .abl/specs, and to read what abl reports.
---

`
	const facts = "Run `abl guide`: it ends with what abl finds in this repository, and what is open.\n"
	return File{skillFile, []byte(head + Guide(facts))}
}

// section is the section about abl in AGENTS.md.
const section = `## abl

This repository is developed with abl: specs are in .abl/specs, settings in .abl/config.yaml. Run
` + "`abl guide`" + ` before you write or change them. Agents that abl calls, the Builder and the Verifier, ignore
this section.
`

// addSection plans the section of AGENTS.md, below what is there.
func addSection(project fs.FS) (Op, error) {
	data, err := readRegular(project, agentsFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Op{}, fmt.Errorf("cannot add a section to %s: %w", agentsFile, err)
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if strings.Contains("\n"+text, "\n## abl\n") {
		return Op{Kind: Keep, Path: agentsFile}, nil
	}
	added := section
	if text = string(data); text != "" {
		text = strings.TrimRight(text, "\r\n") + "\n\n"
	}
	if strings.Contains(text, "\r\n") {
		added = strings.ReplaceAll("\n\n"+added, "\n", "\r\n")
		text = strings.TrimRight(text, "\r\n")
	}
	return Op{
		Kind: Add,
		Path: agentsFile,
		Data: []byte(text + added),
		Lines: strings.Split(strings.TrimSpace(section),
			"\n"),
	}, nil
}
