package agent

import (
	"encoding/json"
	"slices"
)

// idle says why a run of that agent that calls itself a success did nothing: no
// model answered it, or it used no tool and so changed nothing.
func idle(name string, usage []Usage, toolless bool) string {
	switch {
	case !slices.ContainsFunc(usage, func(u Usage) bool { return u.Total != nil && *u.Total > 0 }):
		return name + " ended without a model request that counted a token"
	case toolless:
		return name + " ended without using a tool, so it did nothing of its task"
	}
	return ""
}

// plus adds figures up; nil as soon as one was not told, or the sum is none.
func plus(all ...*int64) *int64 {
	var sum int64
	for _, n := range all {
		if n == nil || sum+*n < sum {
			return nil
		}
		sum += *n
	}
	return &sum
}

// toolAction names a tool and the one parameter that says most about it.
func toolAction(tool string, parameters map[string]json.RawMessage) string {
	for _, key := range []string{"command", "file_path", "absolute_path", "path", "dir_path", "pattern", "query"} {
		var value string
		if json.Unmarshal(parameters[key], &value) == nil && value != "" {
			return action(tool, value)
		}
	}
	return action(tool, "")
}
