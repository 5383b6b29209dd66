package detect

import (
	"regexp"
	"slices"
	"strings"
)

// envReaders are packages with which a program reads a .env.
var envReaders = []string{
	"dotenv", "dotenv-safe", "dotenv-flow", "env-cmd", "@nestjs/config", "python-dotenv", "environs",
	"django-environ", "python-decouple",
	"pydantic-settings", "dynaconf", "dotenvy", "dotenv-rails", "starlette", "laravel/framework",
}

// readsDotenv says whether the app reads a .env, by its packages or by the module that reads it.
func (p *project) readsDotenv() bool {
	if p.readsEnv {
		return true
	}
	for _, name := range envReaders {
		if _, python := p.python.needs[name]; python || p.node.depends(name) != "" {
			return true
		}
	}
	for _, file := range []string{"go.mod", "Cargo.toml", "Gemfile", "composer.json"} {
		for _, name := range []string{"joho/godotenv", "dotenvy", "\ndotenv", "dotenv-rails", "laravel/framework",
			"vlucas/phpdotenv"} {
			if strings.Contains(p.text(file), name) {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.starts, func(s start) bool { return strings.Contains(s.command, "--env-file") })
}

// exampleEnv gives an app that reads a .env the variables of the repository's .env.example: abl
// shows nobody a .env. A host of this machine becomes the service with that port.
func (p *project) exampleEnv() {
	if p.has(".env") {
		p.say("git tracks %s, which abl shows no agent and no app: write what the app needs into app.env", p.at(".env"))
	}
	all := p.sampleEnv()
	if len(all) == 0 || len(p.starts) == 0 || !p.readsDotenv() {
		return
	}
	local := regexp.MustCompile(`\b(?:localhost|127\.0\.0\.1):(\d+)`)
	for key, f := range all {
		f.Value = local.ReplaceAllStringFunc(f.Value, func(address string) string {
			port := address[strings.LastIndex(address, ":")+1:]
			if name := p.serviceAt(port); name != "" {
				return name + ":" + port
			}
			return address
		})
		if m := local.FindString(f.Value); m != "" && strings.Contains(f.Value, "://") && !strings.HasPrefix(f.Value,
			"http") {
			p.say("%s: %s is on this machine, and no service of the repository answers at that port", f.From, key)
		}
		if name := p.serviceOf(key, f.Value); name != "" {
			f.Value, f.Note = name, "the service, in the place of this machine"
		}
		if !strings.ContainsAny(f.Value, "\n\x00") && key != "NODE_ENV" && !variables().MatchString(f.Value) {
			p.note(f.Key, f.Value, f.From, f.Note)
		}
	}
}

// serviceAt is the service that answers at a port, "" for none.
func (p *project) serviceAt(port string) string {
	for key, f := range p.values {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(key, "app.services."), ".ready.port"); ok && f.Value == port {
			return name
		}
	}
	return ""
}

// serviceOf is the service that a variable such as DB_HOST=localhost stands for, "" for none.
func (p *project) serviceOf(key, value string) string {
	if value != "localhost" && value != "127.0.0.1" {
		return ""
	}
	ports := map[string][]string{
		"DB": {"5432", "3306", "27017"}, "DATABASE": {"5432", "3306",
			"27017"}, "POSTGRES": {"5432"}, "PG": {"5432"}, "MYSQL": {"3306"},
		"REDIS": {"6379"}, "MONGO": {"27017"}, "MONGODB": {"27017"}, "RABBITMQ": {"5672"}, "MEMCACHED": {"11211"},
	}
	for _, port := range ports[strings.TrimSuffix(strings.TrimSuffix(key, "_HOST"), "HOST")] {
		if name := p.serviceAt(port); name != "" {
			return name
		}
	}
	return ""
}
