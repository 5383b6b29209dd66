package detect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// sampleEnv is the .env.example of the repository.
type sampleEnv struct{ *project }

// sampleEnv returns the variables of the .env.example, some of them empty, with the values of other variables in it.
func (p *project) sampleEnv() map[string]Fact {
	all := map[string]Fact{}
	file := p.nearest(".env.example .env.sample .env.dist env.example .env.template .example.env example.env " +
		".env.local.example .env.development.example sample.env")
	for n, text := range strings.Split(p.tree.Text(file), "\n") {
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "export "), "=")
		name = strings.TrimSpace(name)
		if match(variableName, name) && !strings.HasPrefix(name, "ABL_") {
			all[name] = fact("app.env."+name, capture(sampleValue, value), Source{file, strconv.Itoa(n + 1)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		f.Value = compile(`\$\{?(\w+)\}?`).ReplaceAllStringFunc(f.Value, func(use string) string {
			return cmp.Or(all[strings.Trim(use, "${}")].Value, use)
		})
		all[name] = f
	}
	return all
}

const (
	// sampleValue captures the value of a variable without its quotes and the comment behind it.
	sampleValue = `^\s*(?:"([^"]*)"|'([^']*)'|(.*?))\s*(?:\s#.*)?$`
	placeholder = `\*\*\*|<[\w .-]+>|\[[A-Za-z_-]+\]|://USER|@HOST\b|(?i)^your|^change.?me`
	secret      = `(?i)secret|pass|key|token|salt`
	listens     = `^(?:APP_|SERVER_|HTTP_|API_|LISTEN_)?(?:HOST|HOSTNAME|ADDRESS|ADDR)$`
)

// envReaders are the packages that read a .env.
const envReaders = "dotenv dotenv-safe dotenv-flow env-cmd @nestjs/config python-dotenv environs django-environ " +
	"python-decouple pydantic-settings dynaconf dotenvy dotenv-rails fastify-cli prisma vite next nuxt @sveltejs/kit astro starlette laravel/framework vlucas/phpdotenv " +
	"github.com/joho/godotenv"

// readsDotenv reports whether the app reads a .env.
func (p *project) readsDotenv() bool {
	return p.readsEnv ||
		slices.ContainsFunc(fields(envReaders), func(name string) bool { return p.deps[name].File != "" }) ||
		slices.ContainsFunc(p.starts, func(s start) bool { return strings.Contains(s.command, "--env-file") })
}

// find gives an app that reads a .env the variables of the .env.example, because abl hides the .env
// from every container. An address on this machine becomes the service with its port.
func (e sampleEnv) find() {
	if e.has(".env") {
		e.say("git tracks %s. abl hides it from agents and from the app: add the variables that the app needs to app.env",
			e.at(".env"))
	}
	if len(e.starts) == 0 || !e.readsDotenv() {
		return
	}
	local := compile(`\b(?:localhost|127\.0\.0\.1):(\d+)`)
	var empty []string
	file := ""
	sample := e.project.sampleEnv()
	for _, key := range slices.Sorted(maps.Keys(sample)) {
		f := sample[key]
		switch _, found := e.values[f.Key]; {
		case found:
			continue
		case f.Value == "":
			empty, file = append(empty, key), f.From.File
			continue
		case match(placeholder, f.Value) && !match(secret, key): // a secret for tests may have any value
			e.ask(f.Key, fmt.Sprintf("%s only has the placeholder %q", f.From, f.Value))
			continue
		}
		f.Value = local.ReplaceAllStringFunc(f.Value, func(address string) string {
			_, port, _ := strings.Cut(address, ":")
			if name := e.serviceAt(port); name != "" {
				return name + ":" + port
			}
			return address
		})
		f.Value = e.withService(f.Value)
		scheme := capture(`([\w+]+)://[^"'/]*\b(?:localhost|127\.0\.0\.1)(?:[:/]|$)`, f.Value)
		if scheme != "" && !strings.HasPrefix(scheme, "http") {
			e.say("%s: %s is an address on this machine, and no service in the repository uses this port", f.From, key)
		}
		if f.Value == "localhost" || f.Value == "127.0.0.1" {
			if name := e.serviceOf(key); name != "" {
				f.Value, f.Note = name, "the service instead of this machine"
			} else if match(listens, key) {
				f.Value, f.Note = "0.0.0.0", "tests do not reach "+f.Value
			}
		}
		if !strings.ContainsAny(f.Value, "\n\x00") && key != "NODE_ENV" && !match(variables, f.Value) {
			e.note(f.Key, f.Value, f.From, f.Note)
		}
	}
	if len(empty) > 0 {
		e.say("%s has no values for %s: add those that the app needs to app.env", file, strings.Join(empty, ", "))
	}
}

// withService replaces this machine by a service in an address without a port, which its scheme shows.
func (p *project) withService(address string) string {
	const local = `^(\w+)\S*://\S*\b(localhost|127\.0\.0\.1)(?:/|$)`
	m := compile(local).FindStringSubmatchIndex(address)
	if m == nil {
		return address
	}
	name := p.serviceAt(usualPort(address[m[2]:m[3]]))
	if name == "" {
		return address
	}
	return address[:m[4]] + name + address[m[5]:]
}

// serviceAt returns the service on a port, "" for none.
func (p *project) serviceAt(port string) string {
	for key, f := range p.values {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(key, "app.services."), ".ready.port"); ok && f.Value == port {
			return name
		}
	}
	return ""
}

// serviceOf returns the service that a variable such as DB_HOST or REDIS_HOST names, "" for none.
func (p *project) serviceOf(variable string) string {
	name := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(variable, "HOST"), "_"))
	ports := []string{usualPort(name)}
	if name == "db" || name == "database" {
		ports = fields("5432 3306 27017")
	}
	for _, port := range ports {
		if name := p.serviceAt(port); name != "" {
			return name
		}
	}
	return ""
}
