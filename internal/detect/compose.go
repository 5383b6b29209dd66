package detect

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/interpolation"
	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
)

// compose is the compose file that is nearest to the folder.
type compose struct {
	*project
	ctx      context.Context
	file     string
	services types.Services
	order    []string // the names of the services, sorted
}

// from returns the place of a key of a service.
func (c compose) from(service, key string) Source {
	return Source{File: c.file, Place: "services." + service + "." + key}
}

// path returns the path in the tree of a path in the compose file.
func (c compose) path(name string) string {
	return path.Join(path.Dir(c.file), strings.TrimPrefix(name, composeDir))
}

// composeDir is the directory that the loader takes for that of the compose file.
const composeDir = "/repository"

func (c compose) find() {
	c.file = c.nearest("compose.yaml compose.yml docker-compose.yaml docker-compose.yml")
	if c.file == "" {
		return
	}
	loaded, err := c.load()
	if err != nil {
		c.say("%s cannot be read: %v", c.file, err)
		return
	}
	c.services, c.order = loaded.Services, slices.Sorted(maps.Keys(loaded.Services))
	app := c.app()
	if app != "" {
		c.readApp(app, c.services[app])
	}
	for _, name := range c.needed(app) {
		c.service(name, c.services[name])
	}
}

// load reads the compose file. It reads no other file: the loader must follow neither include nor
// extends, and must not read a .env.
func (c compose) load() (*types.Project, error) {
	text := compile(`(?m)^version:.*$`).ReplaceAllString(c.tree.Text(c.file), "") // the loader warns about it
	details := types.ConfigDetails{
		WorkingDir:  composeDir,
		ConfigFiles: []types.ConfigFile{{Filename: path.Base(c.file), Content: []byte(text)}},
		Environment: types.Mapping{},
	}
	sample := c.sampleEnv()
	return loader.LoadWithContext(c.ctx, details, func(o *loader.Options) {
		o.SkipExtends, o.SkipInclude, o.SkipConsistencyCheck = true, true, true
		o.SkipResolveEnvironment, o.SkipResolveLabels, o.SkipDefaultValues = true, true, true
		o.ResolvePaths = false
		o.Interpolate = &interpolation.Options{
			LookupValue: func(name string) (string, bool) { v := sample[name].Value; return v, v != "" },
			Substitute:  substitute,
		}
		o.SetProjectName("repository", true)
	})
}

const publishedBy = `^(?:[^=\s]*:)?\$\{?\w+\}?:(\d{2,5})(?:/tcp)?$`

// substitute replaces variables as compose does, but keeps the variables without a value: a blank
// would look like a value.
func substitute(text string, lookup template.Mapping) (string, error) {
	if port := capture(publishedBy, text); port != "" {
		return port, nil // the port of the host does not matter here
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

// app returns the service that is built from the folder, or whose image has the name of the
// project. It returns "" for no or several such services.
func (c compose) app() string {
	var built, web []string
	for _, name := range c.order {
		if c.isHere(c.services[name]) {
			built = append(built, name)
			if len(c.ports(name)) > 0 {
				web = append(web, name)
			}
		}
	}
	switch {
	case len(built) == 1:
		return built[0]
	case len(web) == 1:
		return web[0]
	case len(built) > 1:
		c.say("%s builds several services from this folder (%s), and abl cannot tell which one is the app",
			c.file, strings.Join(built, ", "))
		return ""
	}
	own := c.names()
	for _, name := range c.order {
		s := c.services[name]
		if base, _ := baseOf(s.Image); s.Build == nil && (slices.Contains(own, base) || slices.Contains(own, name)) {
			return name
		}
	}
	return ""
}

// isHere reports whether a service is built from the folder, or runs its source from a volume.
func (c compose) isHere(s types.ServiceConfig) bool {
	here := c.at(".")
	if s.Build != nil {
		dir := c.path(s.Build.Context)
		return dir == here || path.Dir(path.Join(dir, s.Build.Dockerfile)) == here
	}
	return slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == "bind" && !path.IsAbs(v.Source) && c.path(v.Source) == here
	})
}

// inVolume reports whether a value is a path in a volume of a service. The app's container has no
// volume.
func inVolume(s types.ServiceConfig, value *string) bool {
	return value != nil && slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool {
		return v.Type == "volume" && (*value == v.Target || strings.Contains(*value, v.Target+"/"))
	})
}

// readApp records the service that is the app.
func (c compose) readApp(name string, s types.ServiceConfig) {
	if s.Build != nil {
		file := s.Build.Dockerfile
		if file == "" {
			file = "Dockerfile"
		}
		c.dockerfile = path.Join(c.path(s.Build.Context), file)
	}
	all := c.ports(name)
	for _, f := range all {
		c.listens(f.Value, f.From)
	}
	if len(all) > 0 {
		c.server("", all[0].From)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
		from := c.from(name, "environment."+key)
		if inVolume(s, s.Environment[key]) {
			c.ask("app.env."+key, fmt.Sprintf("%s is a path in a volume, and the app's container has no volumes", from))
			continue
		}
		c.variable("app.env.", key, s.Environment[key], from)
	}
	for _, file := range s.EnvFiles {
		c.readsEnv = true
		if len(c.sampleEnv()) == 0 {
			c.say("%s: abl does not read the env_file %q of the app: add the variables that the app needs to app.env",
				c.file, path.Base(file.Path))
		}
	}
	if s.HealthCheck != nil {
		c.set("app.ready.path", capture(probed, strings.Join(s.HealthCheck.Test, " ")), c.from(name, "healthcheck"))
	}
	if command := c.runnable(commandLine(slices.Concat(s.Entrypoint, s.Command))); command != "" {
		c.try(command, c.from(name, "command"))
	}
}

const (
	variableName = `^[A-Za-z_][A-Za-z0-9_]*$`
	variables    = `\$\{?[A-Za-z_]`
)

// variable records a variable, or that its value is not in the repository.
func (c compose) variable(prefix, name string, value *string, from Source) {
	switch {
	case !match(variableName, name) || strings.HasPrefix(name, "ABL_"):
		c.say("%s: abl skips the variable %q: it cannot set a variable with this name", from, name)
	case value == nil || match(variables, *value):
		c.ask(prefix+name, fmt.Sprintf("%s reads it from the environment, and no .env.example has a value", from))
	default:
		c.set(prefix+name, *value, from)
	}
}

// tooling matches images of developers' tools and of servers that stand in front of an app.
const tooling = `(?i)adminer|pgadmin|phpmyadmin|mongo-express|redisinsight|redis-commander|traefik` +
	`|nginx|caddy|haproxy|grafana|prometheus|jaeger|portainer|watchtower|zipkin|dozzle`

// usualPorts are the ports of well-known images.
var usualPorts = [][2]string{
	{"5432", "postgres postgresql postgis timescaledb pgvector pg"},
	{"3306", "mysql mysql-server percona mariadb"},
	{"6379", "redis valkey"},
	{"27017", "mongo mongodb"},
	{"5672", "rabbitmq"},
	{"11211", "memcached"},
	{"4222", "nats"},
	{"9200", "elasticsearch opensearch"},
	{"9000", "minio"},
	{"1025", "mailhog mailpit"},
	{"8123", "clickhouse-server"},
	{"4566", "localstack"},
	{"7700", "meilisearch"},
	{"6333", "qdrant"},
	{"8500", "consul"},
	{"8200", "vault"},
	{"2379", "etcd"},
}

// usualPort returns the port of a well-known image, "" for another one.
func usualPort(image string) string {
	for _, p := range usualPorts {
		if slices.Contains(fields(p[1]), image) {
			return p[0]
		}
	}
	return ""
}

// ports returns the TCP ports of a service.
func (c compose) ports(name string) (all []Fact) {
	for _, port := range c.services[name].Ports {
		if port.Protocol != "udp" {
			all = append(all, fact("", fmt.Sprint(port.Target), c.from(name, "ports")))
		}
	}
	for _, port := range c.services[name].Expose {
		all = append(all, fact("", port, c.from(name, "expose")))
	}
	return all
}

// needed returns the services that the app depends on. Without an app it returns all services
// except developers' tools.
func (c compose) needed(app string) (names []string) {
	s, known := c.services[app]
	if !known {
		return c.allNeeded()
	}
	todo := slices.Collect(maps.Keys(s.DependsOn))
	for _, name := range c.order {
		named := regexp.MustCompile(`(?:^|[/@,=])` + regexp.QuoteMeta(name) + `(?:[:/,]|$)`)
		for _, value := range s.Environment {
			if value != nil && named.MatchString(*value) {
				todo = append(todo, name)
			}
		}
	}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if s, known := c.services[next]; known && next != app && !slices.Contains(names, next) {
			names = append(names, next)
			todo = slices.AppendSeq(todo, maps.Keys(s.DependsOn))
		}
	}
	slices.Sort(names)
	return names
}

func (c compose) allNeeded() (names []string) {
	var databases []string
	for _, name := range c.order {
		base, _ := baseOf(c.services[name].Image)
		switch port := usualPort(base); {
		case c.services[name].Build != nil || match(tooling, base):
		case port == "":
			c.say("%s: abl skips the service %q: no file shows that the app needs it", c.file, name)
		case port == "5432" || port == "3306":
			databases = append(databases, name)
		default:
			names = append(names, name)
		}
	}
	if len(databases) > 1 {
		c.say("%s: abl skips the databases %s: no file shows which one the app needs", c.file,
			strings.Join(databases, ", "))
		return names
	}
	return slices.Sorted(slices.Values(append(names, databases...)))
}

const serviceName = `^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`

// service records a service that the app needs, or why abl cannot start it.
func (c compose) service(name string, s types.ServiceConfig) {
	key := "app.services." + hyphens(name)
	base, _ := baseOf(s.Image)
	port := fact("", usualPort(base), c.from(name, "image"))
	for _, f := range c.ports(name) {
		if port.Value == "" || f.Value == port.Value {
			port = f
		}
	}
	without := ""
	switch {
	case s.Build != nil:
		c.say("%s: abl skips the service %q, which is built from source: "+
			"define it with a dockerfile in app.services (docs/services.md)", c.file, name)
		return
	case !match(serviceName, hyphens(name)) || name == "app":
		without = "a name consists of lower-case letters, digits and -, and must not be app"
	case s.Image == "" || strings.ContainsAny(s.Image, "${ \t"):
		without = fmt.Sprintf("its image %q is incomplete", s.Image)
	case port.Value == "":
		without = "no file shows the port of " + s.Image
	}
	if without != "" {
		c.say("%s: abl skips the service %q: %s", c.file, name, without)
		return
	}
	if c.set(key+".image", s.Image, c.from(name, "image")); hyphens(name) != name {
		c.say("%s: the service %q is %q in abl, which allows no _ in names", c.file, name, hyphens(name))
		c.renamed = append(c.renamed, name)
	}
	c.set(key+".ready.port", port.Value, port.From)
	for _, v := range slices.Sorted(maps.Keys(s.Environment)) {
		c.variable(key+".env.", v, s.Environment[v], c.from(name, "environment."+v))
	}
	c.serviceEnv(key, base, s)
	if command := slices.Concat(s.Entrypoint, s.Command); len(command) > 0 {
		c.say("%s: abl ignores the command of the service %q (%s): "+
			"if the service needs it, use a dockerfile with this CMD", c.file, name, commandLine(command))
	}
	for _, v := range s.Volumes {
		c.files(name, v)
	}
}

// hyphens returns the name of a service as abl accepts it.
func hyphens(name string) string { return strings.ReplaceAll(name, "_", "-") }

// serviceEnv records the variables of the .env.example that are named like the server in an image, such as
// POSTGRES_USER, for a service that reads a file of variables.
func (c compose) serviceEnv(key, base string, s types.ServiceConfig) {
	found := len(s.EnvFiles) == 0
	for variable, f := range c.sampleEnv() {
		prefix, _, _ := strings.Cut(strings.ToLower(variable), "_")
		if len(s.EnvFiles) > 0 && f.Value != "" && usualPort(prefix) != "" && usualPort(prefix) == usualPort(base) {
			c.set(key+".env."+variable, f.Value, f.From)
			found = true
		}
	}
	if !found {
		c.say("%s: abl does not read the env_file %q of a service: copy the variables that the service needs into %s.env",
			c.file, path.Base(s.EnvFiles[0].Path), key)
	}
}

// files records a file that is mounted into a service, or the files of a directory of init scripts.
func (c compose) files(service string, v types.ServiceVolumeConfig) {
	if v.Type != "bind" || !path.IsAbs(v.Target) || path.Dir(v.Target) == "/" {
		return
	}
	file := c.path(v.Source)
	all := []string{file}
	if !c.tree.Has(file) {
		all = c.tree.Below(file, nil)
		if len(all) > 20 || !strings.Contains(v.Target, "initdb") {
			return
		}
	}
	for _, inner := range all {
		target := path.Join(v.Target, strings.TrimPrefix(inner, file))
		c.set("app.services."+hyphens(service)+".files."+target, inner, c.from(service, "volumes"))
	}
}
