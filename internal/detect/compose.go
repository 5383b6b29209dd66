package detect

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"abl/internal/lazyregexp"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
)

var composeFiles = []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}

// composed is what a compose file says.
type composed struct {
	file string
	*types.Project
}

// from is the place of a service in the file.
func (c composed) from(service, key string) Source {
	return Source{File: c.file, Place: strings.TrimSuffix("services."+service+"."+key, ".")}
}

// loadCompose reads the compose file that is nearest to the folder. No other file is read: neither
// one that it includes or extends nor a .env.
func (p *project) loadCompose() (c composed, found bool) {
	c.file = p.nearest(composeFiles...)
	if c.file == "" {
		return c, false
	}
	text := regexp.MustCompile(`(?m)^version:.*$`).ReplaceAllString(p.tree.Text(c.file), "")
	details := types.ConfigDetails{
		WorkingDir:  "/repository",
		ConfigFiles: []types.ConfigFile{{Filename: path.Base(c.file), Content: []byte(text)}},
		Environment: types.Mapping{},
	}
	sample := p.sampleEnv()
	project, err := loader.LoadWithContext(p.ctx, details, func(o *loader.Options) {
		o.SkipExtends, o.SkipInclude, o.SkipConsistencyCheck = true, true, true
		o.SkipResolveEnvironment, o.SkipResolveLabels, o.SkipDefaultValues = true, true, true
		o.ResolvePaths = false
		o.Interpolate = &interpolation.Options{
			LookupValue: func(name string) (string, bool) { v, ok := sample[name]; return v.Value, ok },
			Substitute:  substitute,
		}
		o.SetProjectName("repository", true)
	})
	if err != nil {
		p.say("%s cannot be read: %v", c.file, err)
		return c, false
	}
	c.Project = project
	return c, true
}

var publishedBy = lazyregexp.New(`^(?:[^=\s]*:)?\$\{?\w+\}?:(\d{2,5})(?:/tcp)?$`)

// substitute replaces variables as compose does, but keeps those without a value as they are
// written: a blank in their place would look like a value.
func substitute(text string, lookup template.Mapping) (string, error) {
	if m := publishedBy().FindStringSubmatch(text); m != nil {
		return m[1], nil // the port of the host does not matter here
	}
	return template.SubstituteWithOptions(text, lookup, template.WithoutLogging, template.WithReplacementFunction(
		func(found string, lookup template.Mapping, c *template.Config) (string, error) {
			value, applied, err := template.DefaultReplacementAppliedFunc(found, lookup, c)
			if err != nil || !applied {
				return found, nil
			}
			return value, nil
		}))
}

// sampleEnv are the variables of the .env.example that the repository has.
func (p *project) sampleEnv() map[string]Fact {
	all := map[string]Fact{}
	file := p.nearest(".env.example", ".env.sample", ".env.dist", "env.example", ".env.template", ".example.env",
		"example.env",
		".env.local.example", ".env.development.example")
	for n, text := range strings.Split(p.tree.Text(file), "\n") {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "export "), "=")
		if name = strings.TrimSpace(name); ok && variableName().MatchString(name) && value != "" && !strings.HasPrefix(name,
			"ABL_") {
			value = strings.Trim(strings.TrimSpace(value), `"'`)
			all[name] = Fact{Key: "app.env." + name, Value: value, From: Source{file, line(n + 1)}}
		}
	}
	return all
}

// composedApp returns the service that is built from the folder that is worked in, or whose image has
// the name of the project.
func (p *project) composedApp(c composed) (name string, others []string) {
	for _, s := range slices.Sorted(maps.Keys(c.Services)) {
		if b := c.Services[s].Build; b != nil {
			folder := path.Join(path.Dir(c.file), strings.TrimPrefix(b.Context, "/repository"))
			file := path.Dir(path.Join(folder, b.Dockerfile))
			if here := path.Join(".", p.dir); folder == here || file == here {
				others = append(others, s)
			}
		} else if p.mounts(c, s) {
			others = append(others, s)
		}
	}
	if len(others) > 1 {
		web := slices.DeleteFunc(slices.Clone(others),
			func(s string) bool { return len(c.Services[s].Ports)+len(c.Services[s].Expose) == 0 })
		if len(web) == 1 {
			return web[0], nil
		}
		return "", others
	}
	for _, s := range slices.Sorted(maps.Keys(c.Services)) {
		base, _ := baseOf(c.Services[s].Image)
		if own := p.names(); len(others) == 0 && c.Services[s].Build == nil && (slices.Contains(own, base) ||
			slices.Contains(own, s)) {
			return s, nil
		}
	}
	return strings.Join(others, ""), nil
}

// mounts says whether a service has the folder that is worked in as a volume: it runs the source.
func (p *project) mounts(c composed, service string) bool {
	return slices.ContainsFunc(c.Services[service].Volumes, func(v types.ServiceVolumeConfig) bool {
		source := path.Join(path.Dir(c.file), strings.TrimPrefix(v.Source, "/repository"))
		return v.Type == "bind" && !path.IsAbs(v.Source) && source == path.Join(".", p.dir)
	})
}

// inVolume says whether a value is a path in a volume of a service: abl's container has none.
func inVolume(s types.ServiceConfig, value *string) bool {
	return value != nil && slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == "volume" && (*value == v.Target || strings.Contains(*value, v.Target+"/"))
	})
}

// names are the names of the project in its manifests.
func (p *project) names() []string {
	all := []string{path.Base(p.node.Name), p.python.Project.Name}
	if m := regexp.MustCompile(`(?m)^\s*name\s*=\s*['"]?([\w.-]+)`).FindStringSubmatch(p.text("setup.cfg")); m != nil {
		all = append(all, m[1])
	}
	if m := moduleLine().FindStringSubmatch(p.text("go.mod")); m != nil {
		all = append(all, path.Base(m[1]))
	}
	if m := regexp.MustCompile(`(?m)^name\s*=\s*"([^"]+)"`).FindStringSubmatch(p.text("Cargo.toml")); m != nil {
		all = append(all, m[1])
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" || name == "." || name == "app" })
}

// readCompose reads what a compose file says about the app and its services. It returns the
// Dockerfile that it names for the app.
func (p *project) readCompose() (dockerfile string) {
	c, found := p.loadCompose()
	if !found {
		return ""
	}
	app, several := p.composedApp(c)
	if len(several) > 0 {
		p.say("%s builds %s from this folder: none of them is taken for the app", c.file, strings.Join(several, " and "))
	}
	if app != "" {
		dockerfile = p.composeApp(c, app)
	}
	for _, name := range p.neededServices(c, app) {
		p.composeService(c, name)
	}
	return dockerfile
}

func (p *project) composeApp(c composed, app string) (dockerfile string) {
	s := c.Services[app]
	if s.Build != nil {
		file := s.Build.Dockerfile
		if file == "" {
			file = "Dockerfile"
		}
		dockerfile = path.Join(path.Dir(c.file), strings.TrimPrefix(s.Build.Context, "/repository"), file)
	}
	for _, port := range s.Ports {
		if port.Protocol != "udp" {
			p.listens(int(port.Target), c.from(app, "ports"))
		}
	}
	for _, port := range s.Expose {
		n, _ := strconv.Atoi(port)
		p.listens(n, c.from(app, "expose"))
	}
	if len(s.Ports)+len(s.Expose) > 0 {
		p.server("", c.from(app, "ports"))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		from := c.from(app, "environment."+name)
		if inVolume(s, s.Environment[name]) {
			p.ask("app.env."+name, fmt.Sprintf("%s is a path in a volume, which abl's container does not have", from))
			continue
		}
		p.composeEnv("app.env."+name, s.Environment[name], from)
	}
	for _, file := range s.EnvFiles {
		p.readsEnv = true
		if len(p.sampleEnv()) == 0 {
			p.say("%s: the app's env_file %q is not read: write what the app needs into app.env", c.file, path.Base(file.Path))
		}
	}
	if s.HealthCheck != nil {
		p.set("app.ready.path", probe(strings.Join(s.HealthCheck.Test, " ")), c.from(app, "healthcheck"))
	}
	words := append(slices.Clone(s.Entrypoint), s.Command...)
	if command, ok := p.runnable(shell(words)); ok && len(words) > 0 {
		p.try(start{command: command, from: c.from(app, "command")})
	}
	return dockerfile
}

var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// composeEnv records a variable, or says that its value is not in the repository.
func (p *project) composeEnv(key string, value *string, from Source) {
	name := key[strings.LastIndex(key, ".")+1:]
	switch {
	case !variableName().MatchString(name) || strings.HasPrefix(name, "ABL_"):
		p.say("%s: the variable %q is left out: abl does not set such a name", from, name)
	case value == nil || variables().MatchString(*value):
		p.ask(key, fmt.Sprintf("%s takes it from the environment, and no file of the repository has a value", from))
	case *value == "":
	default:
		p.set(key, *value, from)
	}
}

// tooling are images that people look at, or that stand in front of an app.
var tooling = lazyregexp.New(`(?i)adminer|pgadmin|phpmyadmin|mongo-express|redisinsight|redis-commander|traefik` +
	`|nginx|caddy|haproxy|grafana|prometheus|jaeger|portainer|watchtower|zipkin|dozzle`)

// neededServices are those that the app depends on. Without an app in the file it is every one
// that is no tool of a developer's.
func (p *project) neededServices(c composed, app string) (names []string) {
	if s, ok := c.Services[app]; ok {
		todo := slices.Sorted(maps.Keys(s.DependsOn))
		for _, name := range slices.Sorted(maps.Keys(c.Services)) {
			for _, value := range s.Environment {
				if value != nil && regexp.MustCompile(`(?:^|[/@,=])`+regexp.QuoteMeta(name)+`(?:[:/,]|$)`).MatchString(*value) {
					todo = append(todo, name)
				}
			}
		}
		for len(todo) > 0 {
			next := todo[0]
			todo = todo[1:]
			if _, there := c.Services[next]; there && next != app && !slices.Contains(names, next) {
				names = append(names, next)
				todo = append(todo, slices.Sorted(maps.Keys(c.Services[next].DependsOn))...)
			}
		}
		slices.Sort(names)
		return names
	}
	var databases []string
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		base, _ := baseOf(c.Services[name].Image)
		port, known := usual[base]
		switch {
		case c.Services[name].Build != nil || tooling().MatchString(base):
			continue
		case !known:
			p.say("%s: the service %q is left out: nothing shows that the app needs it", c.file, name)
			continue
		case port == "5432" || port == "3306":
			databases = append(databases, name)
		}
		names = append(names, name)
	}
	if len(databases) > 1 {
		p.say("%s has several databases (%s), and nothing shows which one the app needs: none is taken", c.file,
			strings.Join(databases, ", "))
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(databases, name) })
	}
	return names
}

// usual are the ports at which well-known images answer.
var usual = map[string]string{
	"postgres": "5432", "postgis": "5432", "timescaledb": "5432", "pgvector": "5432", "redis": "6379",
	"valkey": "6379",
	"mysql":  "3306", "mysql-server": "3306", "percona": "3306", "mariadb": "3306", "mongo": "27017",
	"rabbitmq": "5672", "memcached": "11211", "nats": "4222",
	"elasticsearch": "9200", "opensearch": "9200", "minio": "9000", "mailhog": "1025", "mailpit": "1025",
	"clickhouse-server": "8123",
	"localstack":        "4566", "meilisearch": "7700", "qdrant": "6333", "consul": "8500", "vault": "8200", "etcd": "2379",
}

var serviceName = lazyregexp.New(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

func (p *project) composeService(c composed, name string) {
	s, key := c.Services[name], "app.services."+name
	base, _ := baseOf(s.Image)
	port, from := usual[base], c.from(name, "image")
	if len(s.Ports) > 0 {
		port, from = strconv.Itoa(int(s.Ports[0].Target)), c.from(name, "ports")
	} else if len(s.Expose) > 0 {
		port, from = s.Expose[0], c.from(name, "expose")
	}
	switch {
	case s.Build != nil:
		p.say("%s builds the service %q from source: abl does not start it. Write it as a service with a dockerfile (docs/services.md)", c.file, name)
		return
	case !serviceName().MatchString(name) || name == "app":
		p.say("%s: the service %q is left out: abl wants lower-case letters, digits and - in its name, and another name than app", c.file, name)
		return
	case s.Image == "" || strings.ContainsAny(s.Image, "${ \t"):
		p.say("%s: the service %q is left out: its image %q is not complete", c.file, name, s.Image)
		return
	case port == "":
		p.say("%s: the service %q is left out: nothing says at which port %s answers", c.file, name, s.Image)
		return
	}
	p.set(key+".image", s.Image, c.from(name, "image"))
	p.set(key+".ready.port", port, from)
	for _, v := range slices.Sorted(maps.Keys(s.Environment)) {
		p.composeEnv(key+".env."+v, s.Environment[v], c.from(name, "environment."+v))
	}
	if len(s.Command) > 0 || len(s.Entrypoint) > 0 {
		p.say("%s: the service %q has a command of its own (%s), which abl does not pass: use a dockerfile with that CMD if it matters", c.file, name,
			shell(append(slices.Clone(s.Entrypoint), s.Command...)))
	}
	for _, v := range s.Volumes {
		p.seed(c, name, v)
	}
}

// seed records a single file that is mounted into a service.
func (p *project) seed(c composed, name string, v types.ServiceVolumeConfig) {
	file := path.Join(path.Dir(c.file), strings.TrimPrefix(v.Source, "/repository"))
	if v.Type != "bind" || !path.IsAbs(v.Target) || path.Dir(v.Target) == "/" {
		return
	}
	from := c.from(name, "volumes")
	if p.tree.Has(file) {
		p.set("app.services."+name+".files."+path.Clean(v.Target), file, from)
		return
	}
	below := p.tree.Below(file, func(string) bool { return true })
	if len(below) > 20 || !strings.Contains(v.Target, "initdb") {
		return
	}
	for _, inner := range below {
		p.set("app.services."+name+".files."+path.Join(v.Target, strings.TrimPrefix(inner, file+"/")), inner, from)
	}
}
