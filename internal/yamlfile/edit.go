package yamlfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Edit changes single lines of a YAML document and keeps all others, with comments. It supports
// only block style. Bytes returns the error of the first change that it cannot make.
type Edit struct {
	name  string
	lines []string
	err   error
}

// NewEdit starts an edit of a file. name is the file name in errors.
func NewEdit(name string, data []byte) *Edit {
	return &Edit{name: name, lines: strings.Split(string(data), "\n")}
}

// Bytes returns the changed text.
func (e *Edit) Bytes() ([]byte, error) {
	if e.err != nil {
		return nil, e.err
	}
	return []byte(strings.Join(e.lines, "\n")), nil
}

// find returns the nodes of a key and of its value, and the mapping that contains them.
func (e *Edit) find(key string) (name, value, in *yaml.Node) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(strings.Join(e.lines, "\n")), &doc); err != nil {
		e.fail(0, key, "is not YAML")
	}
	if len(doc.Content) == 0 {
		return nil, nil, nil
	}
	value = doc.Content[0]
	for word := range strings.SplitSeq(key, ".") {
		in, name = value, nil
		if in.Kind != yaml.MappingNode {
			return nil, nil, nil
		}
		for i := 0; i+1 < len(in.Content); i += 2 {
			if in.Content[i].Value == word {
				name, value = in.Content[i], in.Content[i+1]
			}
		}
		if name == nil {
			return nil, nil, in
		}
		if in.Style&yaml.FlowStyle != 0 {
			e.fail(in.Line, key, "is in braces, which abl does not change")
			return nil, nil, nil
		}
	}
	return name, value, in
}

func (e *Edit) fail(line int, key, why string) {
	if e.err == nil {
		e.err = &Error{File: e.name, Line: line, Msg: key + " " + why}
	}
}

// Has reports whether a key exists.
func (e *Edit) Has(key string) bool {
	name, _, _ := e.find(key)
	return name != nil
}

// Set changes the value of a key, or adds the key at the beginning of its section. It adds a missing
// section at the end. text is a YAML value on one line.
func (e *Edit) Set(key, text string) {
	if e.err != nil {
		return
	}
	name, value, _ := e.find(key)
	if name == nil {
		e.add(key, " "+text)
		return
	}
	if value.Kind != yaml.ScalarNode || value.Line != name.Line || lastLine(value) != name.Line {
		e.fail(name.Line, key, "is not one value on one line")
		return
	}
	line := e.lines[name.Line-1]
	from := value.Column - 1
	end := from + scalarEnd(line[from:])
	e.lines[name.Line-1] = line[:from] + text + line[end:]
}

// scalarEnd returns the length of the scalar at the beginning of text.
func scalarEnd(text string) int {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		for i := 1; i < len(text); i++ {
			if text[0] == '"' && text[i] == '\\' {
				i++
			} else if text[i] == text[0] {
				if text[0] == '\'' && i+1 < len(text) && text[i+1] == '\'' {
					i++
					continue
				}
				return i + 1
			}
		}
	}
	if i := strings.Index(text, " #"); i >= 0 {
		text = text[:i]
	}
	return len(strings.TrimRight(text, " \t\r"))
}

// add adds a key with the text behind its colon, and the sections above it that do not exist.
func (e *Edit) add(key, text string) {
	parent := Above(key)
	at, indent, line := len(e.lines), "", strings.TrimPrefix(key, parent+".")+":"+text
	if parent != "" {
		name, value, _ := e.find(parent)
		switch {
		case e.err != nil:
			return
		case name == nil:
			e.add(parent, "\n  "+strings.ReplaceAll(line, "\n", "\n  "))
			return
		case value.Kind != yaml.MappingNode || len(value.Content) == 0 || value.Style&yaml.FlowStyle != 0:
			e.fail(name.Line, parent, "is not a section to add a key to")
			return
		}
		at, indent = name.Line, strings.Repeat(" ", value.Content[0].Column-1)
	} else if e.lines[at-1] == "" { // behind the last line end
		at--
	}
	lines := strings.Split(indent+strings.ReplaceAll(line, "\n", "\n"+indent), "\n")
	e.lines = slices.Insert(e.lines, at, lines...)
}

// Comment comments out a key with everything below it. It ignores a missing key.
func (e *Edit) Comment(key string) {
	if e.err != nil {
		return
	}
	name, value, _ := e.find(key)
	if name == nil {
		return
	}
	last := lastLine(value)
	for n := name.Line; n <= last; n++ {
		line := e.lines[n-1]
		if indent := name.Column - 1; len(strings.TrimSpace(line[:min(indent, len(line))])) == 0 && len(line) > indent {
			e.lines[n-1] = line[:indent] + "# " + line[indent:]
		}
	}
}

// lastLine returns the last line of a node: the last line of a block scalar, or the first line of
// any other scalar.
func lastLine(n *yaml.Node) int {
	last := n.Line
	if n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		last += strings.Count(strings.TrimRight(n.Value, "\n"), "\n") + 1
	}
	for _, part := range n.Content {
		last = max(last, lastLine(part))
	}
	return last
}
