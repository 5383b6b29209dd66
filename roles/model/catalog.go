package model

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Names of the providers, whose APIs models are asked through.
const (
	Google = "gemini"
	OpenAI = "openai"
)

// Catalog says whose API each model is asked through.
type Catalog map[string]string

// Known are the models that can always be asked.
func Known() Catalog { return Catalog{Gemini: Google, GPT: OpenAI} }

// Names are the models in a catalog, sorted.
func (c Catalog) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Providers are those that there are, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// With adds the models that a file lists: a line has a name and its provider, and
// one that begins with # says nothing.
func (c Catalog) With(file string, data []byte) (Catalog, error) {
	all := maps.Clone(c)
	no := 0
	for line := range strings.Lines(string(data)) {
		no++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		_, known := providers[words[len(words)-1]]
		if len(words) != 2 || !known || !modelName.MatchString(words[0]) {
			return nil, fmt.Errorf("%s line %d: want the name of a model and its provider (%s), such as gemini-3-pro gemini", file, no, strings.Join(Providers(), " or "))
		}
		all[words[0]] = words[1]
	}
	return all, nil
}
