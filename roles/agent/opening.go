package agent

import (
	"cmp"
	"fmt"
	"strings"
)

// model is the one to name on an agent's command line.
func model(a Agent, c Call) (string, error) {
	name := cmp.Or(c.Model, a.DefaultModel())
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\r\n") {
		return "", fmt.Errorf("cannot start %s: %q is not the name of a model", a.Name(), c.Model)
	}
	return name, nil
}
