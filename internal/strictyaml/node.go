package strictyaml

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v3"
)

// Node is one value of a document, for types that read themselves.
type Node struct {
	node *yaml.Node
	key  string
	dec  *decoder
}

// Line is where the value stands, counted from 1.
func (n Node) Line() int { return n.node.Line }

// Scalar returns the text of a value that is one word, and whether it is one.
func (n Node) Scalar() (string, bool) {
	return n.node.Value, n.node.Kind == yaml.ScalarNode
}

// IsList says whether the value is a list.
func (n Node) IsList() bool { return n.node.Kind == yaml.SequenceNode }

// IsMap says whether the value has keys.
func (n Node) IsMap() bool { return n.node.Kind == yaml.MappingNode }

// Decode reads the value into what into points to. A type that reads itself
// calls it with another type than its own, or it would call itself for ever.
func (n Node) Decode(into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("internal error: cannot decode into %T", into)
	}
	return n.dec.value(n.node, n.key, v.Elem())
}

// Errorf is an *Error at this value.
func (n Node) Errorf(format string, args ...any) error {
	return n.dec.fail(n.node, format, args...)
}

// Lines maps every dotted key of a document to the line on which it stands;
// the items of a list are key[0], key[1] and so on. What is decoded can then be
// judged later and still be answered with a line.
func Lines(name string, data []byte) (map[string]int, error) {
	root, err := parse(name, data)
	if err != nil || root == nil {
		return nil, err
	}
	lines := make(map[string]int)
	collect(lines, "", root, 0)
	return lines, nil
}

// collect does not follow aliases, so it visits each value once.
func collect(lines map[string]int, key string, n *yaml.Node, depth int) {
	if depth > maxDepth {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := join(key, n.Content[i].Value)
			lines[k] = n.Content[i].Line
			collect(lines, k, n.Content[i+1], depth+1)
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			k := fmt.Sprintf("%s[%d]", key, i)
			lines[k] = item.Line
			collect(lines, k, item, depth+1)
		}
	}
}
