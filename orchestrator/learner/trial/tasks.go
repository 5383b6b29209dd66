package trial

import (
	"fmt"
	"strings"

	"abl/internal/strictyaml"
)

// Task is one to be tried.
type Task struct {
	Task   string `yaml:"task"`
	Expect string `yaml:"expect"` // what the program's output has to hold; "" is satisfied by any that runs
}

// file is TASKS.yaml.
type file struct {
	Version int    `yaml:"version"`
	Tasks   []Task `yaml:"tasks"`
}

const maxTasks = 200

// Parse reads TASKS.yaml. Every error names the file, and the line where it has one.
func Parse(name string, data []byte) ([]Task, error) {
	var f file
	if err := strictyaml.Decode(name, data, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Version != 1:
		return nil, fmt.Errorf("%s: version is %d, want 1", name, f.Version)
	case len(f.Tasks) == 0:
		return nil, fmt.Errorf("%s: has no tasks", name)
	case len(f.Tasks) > maxTasks:
		return nil, fmt.Errorf("%s: has %d tasks, want at most %d", name, len(f.Tasks), maxTasks)
	}
	for i, t := range f.Tasks {
		if strings.TrimSpace(t.Task) == "" {
			return nil, fmt.Errorf("%s: tasks[%d] has no task", name, i)
		}
	}
	return f.Tasks, nil
}
