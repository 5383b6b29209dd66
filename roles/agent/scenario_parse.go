package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/yamlfile"
)

// Parse reads a scenario file. Every error names the file, and the line where
// the mistake has one. A name that ends in .json is read as JSON, which is how
// abl hands on a scenario that it has resolved.
func Parse(name string, data []byte) (Scenario, error) {
	var s Scenario
	if filepath.Ext(name) == ".json" {
		if err := decodeJSON(data, &s); err != nil {
			return Scenario{}, fmt.Errorf("%s: %w", name, err)
		}
	} else if err := yamlfile.Decode(name, data, &s); err != nil {
		return Scenario{}, err
	}
	if key, err := s.check(); key != "" {
		return Scenario{}, yamlfile.At(name, data, key, err)
	} else if err != nil {
		return Scenario{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// ParseCall reads the one call that abl hands to the scripted agent, as JSON.
func ParseCall(name string, data []byte) (ScriptCall, error) {
	var c ScriptCall
	if err := decodeJSON(data, &c); err != nil {
		return ScriptCall{}, fmt.Errorf("%s: %w", name, err)
	}
	if err := c.check(); err != nil {
		return ScriptCall{}, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

func decodeJSON(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("is not a scenario in JSON: %w", err)
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return fmt.Errorf("has something after its end")
	}
	return nil
}

// check finds the first mistake and the key of the part that has it.
func (s Scenario) check() (key string, err error) {
	if s.Version != Version {
		return "", fmt.Errorf("version is %d, want %d", s.Version, Version)
	}
	if len(s.Calls) == 0 {
		return "", fmt.Errorf("has no calls")
	}
	for i, c := range s.Calls {
		key := fmt.Sprintf("calls[%d]", i)
		for j, step := range c.Steps {
			if err := step.check(); err != nil {
				return fmt.Sprintf("%s.steps[%d]", key, j), err
			}
		}
		if err := c.checkHead(); err != nil {
			return key, err
		}
	}
	return "", nil
}

func (c ScriptCall) check() error {
	if err := c.checkHead(); err != nil {
		return err
	}
	for i, s := range c.Steps {
		if err := s.check(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// checkHead checks all of a call but its steps.
func (c ScriptCall) checkHead() error {
	switch c.End {
	case "", EndOK, EndSilent, EndError, EndCrash, EndHang, EndAway, EndLogin:
	default:
		return fmt.Errorf("end is %q, want ok, silent, error, away, login, crash or hang", c.End)
	}
	switch {
	case !slices.Contains(Roles(), c.Role):
		return fmt.Errorf("role is %q, want builder or verifier, or a step of learning: %s", c.Role, strings.Join(Roles()[2:], ", "))
	case c.Phase < 0 || c.Iteration < 0 || c.Attempt < 0:
		return fmt.Errorf("phase, iteration and attempt are numbers from 1, or left out for any")
	case c.Exit < 0 || c.Exit > 255:
		return fmt.Errorf("exit is %d, want 0 to 255", c.Exit)
	}
	for _, u := range c.Usage {
		if err := u.check(); err != nil {
			return err
		}
	}
	return nil
}

func (u ScriptUsage) check() error {
	if u.Model == "" {
		return fmt.Errorf("usage lacks its model")
	}
	if u.Requests < 0 {
		return fmt.Errorf("usage of %q has fewer than 0 requests", u.Model)
	}
	if u.Sane() != u.Count {
		return fmt.Errorf("usage of %q has a count below 0", u.Model)
	}
	return nil
}

// local says whether a path stays below the folder that it starts from.
func local(path string) bool {
	return filepath.IsLocal(path) && filepath.Clean(path) != "." && !strings.ContainsAny(path, "\\\x00")
}
