package detect

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"abl/internal/lazyregexp"

	"github.com/BurntSushi/toml"
)

// cargo is what abl reads of a Cargo.toml.
type cargo struct {
	Package struct {
		Name        string `toml:"name"`
		RustVersion any    `toml:"rust-version"`
		DefaultRun  string `toml:"default-run"`
	} `toml:"package"`
	Bin []struct {
		Name string `toml:"name"`
	} `toml:"bin"`
	Dependencies map[string]any `toml:"dependencies"`
	Workspace    *struct {
		Members []string `toml:"members"`
	} `toml:"workspace"`
}

func (p *project) cargo() (c cargo) {
	if _, err := toml.Decode(p.text("Cargo.toml"), &c); err != nil {
		p.say("%s cannot be read: %s", p.at("Cargo.toml"), strings.ReplaceAll(err.Error(), "\n", " "))
	}
	return c
}

func loadRust(p *project) {
	from := p.src(p.first("Cargo.lock", "Cargo.toml"), "")
	p.needs(p.src("Cargo.toml", ""), "cargo", "rustc", "gcc", "libc6-dev")
	p.makes("target")
	p.rustVersion()
	if len(p.cargo().Dependencies) > 0 || p.has("Cargo.lock") {
		fetch := "CARGO_HOME=.cargo-home cargo fetch"
		if p.has("Cargo.lock") {
			fetch += " --locked"
		}
		p.set("app.prepare", fetch, from)
		p.set("app.env.CARGO_HOME", "/workspace/src/"+path.Join(p.dir, ".cargo-home"), from)
		p.set("network.allow", "crates", from)
		p.makes(".cargo-home")
	}
}

// debianRust is the Rust of Debian 13.
var debianRust = []int{1, 85}

// rustVersion names a version that Debian does not have.
func (p *project) rustVersion() {
	for _, file := range []string{"rust-toolchain.toml", "rust-toolchain", "Cargo.toml"} {
		m := regexp.MustCompile(`(?m)^\s*(?:channel|rust-version)\s*=\s*"(\d+\.\d+)` +
			`|^(\d+\.\d+)`).FindStringSubmatch(p.text(file))
		if m != nil && slices.Compare(numbers(m[1]+m[2]), debianRust) > 0 {
			p.say("%s asks for Rust %s, and Debian 13 has 1.85: another version needs a Dockerfile (docs/toolchains.md)",
				p.at(file), m[1]+m[2])
		}
	}
}

var (
	rustPort = lazyregexp.New(`"(?:0\.0\.0\.0|127\.0\.0\.1|\[::\]|localhost):(\d{2,5})"` +
		`|\(\[0, ?0, ?0, ?0\], ?(\d{2,5})\)|"(?:0\.0\.0\.0|127\.0\.0\.1)"\s*,\s*(\d{2,5})\)`)
	clapPort = lazyregexp.New(`#\[(?:arg|clap` +
		`|structopt)\([^\]]*"[^"]*port[^"]*"[^\]]*default_value(?:_t)?\s*=\s*"?(\d{2,5})`)
	rustTCP = lazyregexp.New(`TcpListener::bind`)
	rustEnv = lazyregexp.New(`env::var\("PORT"\)`)
)

func readRust(p *project) {
	c := p.cargo()
	for _, name := range []string{"axum", "actix-web", "rocket", "warp", "hyper", "tide", "poem", "salvo"} {
		d, ok := c.Dependencies[name]
		if table, _ := d.(map[string]any); ok && table["optional"] != true {
			p.server("http", p.src("Cargo.toml", "dependencies."+name))
			break
		}
	}
	var mains []Fact
	commands := false // it has several, one of which may serve
	for _, file := range p.sources(".rs") {
		text := p.tree.text(file, maxSource)
		inner := strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
		if inner == "src/main.rs" || strings.HasPrefix(inner, "src/bin/") {
			mains = append(mains, Fact{Value: inner, From: Source{File: file}})
		}
		p.portsIn(file, text, rustPort(), clapPort())
		if rustEnv().MatchString(text) {
			p.set("PORT", "PORT", Source{file, lineOf(text, rustEnv())})
		}
		commands = commands || strings.Contains(text, "Subcommand") || strings.Contains(text, ".subcommand(")
		if rustTCP().MatchString(text) {
			p.server("tcp", Source{file, lineOf(text, rustTCP())})
		}
	}
	if commands && !p.contains() {
		p.serves = slices.DeleteFunc(p.serves, func(f Fact) bool { return f.Value == "tcp" })
	}
	p.routes(".rs")
	p.rustStart(c, mains)
	p.check("test", "cargo test --offline", "tests", p.src("Cargo.toml", ""))
}

func (p *project) rustStart(c cargo, mains []Fact) {
	run := "cargo run --offline --release"
	build := `cargo build --offline --release --quiet --manifest-path "$ABL_SRC/Cargo.toml" && "$ABL_SRC/target/release/`
	switch {
	case c.Workspace != nil && c.Package.Name == "":
		p.ask("app.command", "Cargo.toml is a workspace of several packages")
	case len(mains) == 0:
		p.serves, p.ports = nil, nil
		p.program("a library", p.src("Cargo.toml", ""))
		p.ask("app.command", "the package has no program: it is a library, so write a program that uses it and name that")
	case len(mains) > 1 && c.Package.DefaultRun == "":
		choices := []Fact{}
		for _, m := range mains {
			name := strings.TrimSuffix(path.Base(m.Value), ".rs")
			if name == "main" {
				name = c.Package.Name
			}
			choices = append(choices, Fact{Key: "app.command", Value: run + " --bin " + name, From: m.From})
		}
		p.ask("app.command", "the package has several programs", choices...)
	case len(p.serves) > 0:
		p.try(start{command: run, from: mains[0].From})
	default:
		name := c.Package.Name
		if len(c.Bin) > 0 && c.Bin[0].Name != "" {
			name = c.Bin[0].Name
		}
		p.program("a program", mains[0].From)
		p.commands = append(p.commands, Fact{Key: "app.command", Value: build + name + `"`, From: mains[0].From})
	}
}

var gem = lazyregexp.New(`(?m)^\s*gem\s+['"]([\w-]+)['"]`)

func loadRuby(p *project) {
	from := p.src(p.first("Gemfile.lock", "Gemfile"), "")
	p.needs(p.src("Gemfile", ""), "ruby-dev", "bundler", "build-essential", "libyaml-dev")
	p.set("app.prepare", "BUNDLE_PATH=vendor/bundle bundle install", from)
	p.set("app.env.BUNDLE_PATH", "vendor/bundle", from)
	p.set("network.allow", "rubygems.org, index.rubygems.org", from)
	p.makes("vendor")
	for _, m := range gem().FindAllStringSubmatch(p.text("Gemfile"), -1) {
		switch m[1] {
		case "pg":
			p.needs(p.src("Gemfile", "pg"), "libpq-dev")
		case "sqlite3":
			p.needs(p.src("Gemfile", "sqlite3"), "libsqlite3-dev")
		case "mysql2":
			p.needs(p.src("Gemfile", "mysql2"), "libmariadb-dev")
		}
	}
}

func readRuby(p *project) {
	gems := map[string]bool{}
	for _, m := range gem().FindAllStringSubmatch(p.text("Gemfile"), -1) {
		gems[m[1]] = true
	}
	switch {
	case gems["rails"]:
		from := p.src("Gemfile", "rails")
		p.server("http", from)
		p.set("app.env.RAILS_DEVELOPMENT_HOSTS", "app", from)
		p.railsStart(from)
	case gems["sinatra"] || gems["puma"] || gems["rackup"] || gems["roda"]:
		if p.has("config.ru") {
			p.server("http", p.src("config.ru", ""))
			p.try(start{command: "bundle exec rackup -o 0.0.0.0 -p 9292", port: 9292, from: p.src("config.ru", "")})
		} else if file := p.first("app.rb", "server.rb", "main.rb"); gems["sinatra"] && file != "" {
			p.server("http", p.src("Gemfile", "sinatra"))
			p.try(start{command: "bundle exec ruby " + file + " -o 0.0.0.0 -p 4567", port: 4567, from: p.src(file, "")})
		}
	}
	if text := p.text("config/routes.rb"); strings.Contains(text, `"/up"`) ||
		regexp.MustCompile(`get ['"]up['"]`).MatchString(text) {
		p.set("app.ready.path", "/up", p.src("config/routes.rb", ""))
	}
	p.rubyPorts()
	p.routes(".rb")
	for _, file := range p.tree.Below(p.at("exe"), func(string) bool { return true }) {
		p.program("a program", Source{File: file})
		name := strings.TrimPrefix(strings.TrimPrefix(file, p.dir), "/")
		p.commands = append(p.commands, Fact{Key: "app.command", From: Source{File: file},
			Value: `BUNDLE_GEMFILE="$ABL_SRC/Gemfile" BUNDLE_PATH="$ABL_SRC/vendor/bundle" bundle exec ruby "$ABL_SRC/` +
				name + `"`})
	}
	for _, c := range [][3]string{{"rubocop", "lint", "bundle exec rubocop"}, {"rspec", "test", "bundle exec rspec"},
		{"rspec-rails", "test", "bundle exec rspec"}} {
		if gems[c[0]] {
			p.check(c[1], c[2], c[1], p.src("Gemfile", c[0]))
		}
	}
	if gems["rails"] && p.hasFolder("test") {
		p.check("test", "bundle exec rails test", "tests", p.src("Gemfile", "rails"))
	}
}

// rubyPorts looks for the port of Puma and the like.
func (p *project) rubyPorts() {
	for _, file := range []string{"config/puma.rb", "config.ru", "app.rb", "server.rb"} {
		text := p.text(file)
		p.portsIn(p.at(file), text,
			regexp.MustCompile(`ENV\.fetch\(\s*['"]PORT['"]\s*(?:,\s*['"]?(\d{2,5})|\)\s*\{\s*['"]?(\d{2,5}))`),
			regexp.MustCompile(`ENV\[['"]PORT['"]\]\s*\|\|\s*['"]?(\d{2,5})|(?m)^\s*(?:set :port,|port)\s+(\d{2,5})`))
		if strings.Contains(text, `"PORT"`) || strings.Contains(text, `'PORT'`) {
			p.set("PORT", "PORT", p.src(file, ""))
		}
	}
}

// railsStart starts Rails, unless it is one that does not run on the Ruby of Debian 13.
func (p *project) railsStart(from Source) {
	locked := regexp.MustCompile(`(?m)^ {4}rails \((\d+)\.[\d.]+\)|gem ['"]rails['"],\s*['"][~>= ]*(\d+)\.`)
	m := locked.FindStringSubmatch(p.text("Gemfile.lock") + "\n" + p.text("Gemfile"))
	if m != nil && atoi(m[1]+m[2]) < 7 {
		p.forbid("app.command",
			"Rails "+m[1]+m[2]+" does not run on Ruby 3.3, which Debian 13 has: it needs an image of its own (docs/toolchains.md)")
		return
	}
	p.try(start{command: "bundle exec rails db:prepare && bundle exec rails server -b 0.0.0.0 -p 3000", port: 3000,
		from: from})
	if m := regexp.MustCompile(`(?m)^ruby ['"]([\d.]+)['"]`).FindStringSubmatch(p.text("Gemfile")); m != nil {
		p.say("%s asks for Ruby %s exactly, and Debian 13 has 3.3: Bundler refuses another version", p.at("Gemfile"), m[1])
	}
}

// composer is what abl reads of a composer.json.
type composer struct {
	Require    map[string]string `json:"require"`
	RequireDev map[string]string `json:"require-dev"`
	Scripts    map[string]any    `json:"scripts"`
	Bin        any               `json:"bin"`
}

func (p *project) composer() (c composer) {
	if err := json.Unmarshal([]byte(p.text("composer.json")), &c); err != nil {
		p.say("%s cannot be read: %v", p.at("composer.json"), err)
	}
	return c
}

func loadPHP(p *project) {
	from := p.src(p.first("composer.lock", "composer.json"), "")
	p.needs(p.src("composer.json", ""), "php-cli", "php-xml", "php-mbstring", "php-curl", "php-sqlite3", "composer",
		"unzip")
	if want := p.composer().Require["php"]; want != "" && !satisfies([]int{8, 4, 0}, want) {
		p.say("%s asks for PHP %s, and Debian 13 has 8.4: another version needs a Dockerfile (docs/toolchains.md)",
			p.at("composer.json"), want)
	}
	if strings.Contains(p.text("composer.json"), "pgsql") {
		p.needs(p.src("composer.json", "require"), "php-pgsql")
	}
	p.set("app.prepare", "composer install --no-interaction --no-progress", from)
	p.set("network.allow", "repo.packagist.org, api.github.com, codeload.github.com", from)
	p.makes("vendor")
}

// laravelStart prepares the database that .env.example names, and starts the server of Laravel.
func (p *project) laravelStart() {
	serve := "php artisan serve --host=0.0.0.0 --port=8000"
	env := p.sampleEnv()
	if p.hasFolder("database/migrations") {
		serve = "php artisan migrate --force && " + serve
	}
	if env["DB_CONNECTION"].Value == "sqlite" {
		serve = "touch database/database.sqlite && " + serve
	}
	p.note("app.env.APP_KEY", "base64:"+strings.Repeat("A", 43)+"=", p.src("artisan", ""),
		"made for tests: Laravel does not start without one")
	p.try(start{command: serve, port: 8000, from: p.src("artisan", "")})
}

func readPHP(p *project) {
	c := p.composer()
	switch {
	case p.has("artisan"):
		p.server("http", p.src("artisan", ""))
		p.laravelStart()
		if strings.Contains(p.text("bootstrap/app.php"), "health: '/up'") {
			p.set("app.ready.path", "/up", p.src("bootstrap/app.php", ""))
		}
	case p.has("public/index.php"):
		p.server("http", p.src("public/index.php", ""))
		p.try(start{command: "php -S 0.0.0.0:8000 -t public", port: 8000, from: p.src("public/index.php", "")})
	case p.has("index.php"):
		p.server("http", p.src("index.php", ""))
		p.try(start{command: "php -S 0.0.0.0:8000", port: 8000, from: p.src("index.php", "")})
	case c.Bin != nil:
		p.program("a program", p.src("composer.json", "bin"))
		file, _ := c.Bin.(string)
		if list, ok := c.Bin.([]any); ok && len(list) == 1 {
			file, _ = list[0].(string)
		}
		if p.has(file) {
			p.commands = append(p.commands, Fact{Key: "app.command", Value: `php "$ABL_SRC/` + path.Clean(file) + `"`,
				From: p.src("composer.json", "bin")})
		}
	default:
		p.library(p.src("composer.json", ""), `cd "$ABL_SRC" && php`, "PHP runs what a test passes by -r")
	}
	for _, s := range []string{"test", "lint"} {
		if c.Scripts[s] != nil {
			p.check(s, "composer "+s, s, p.src("composer.json", "scripts."+s))
		}
	}
	if c.RequireDev["phpunit/phpunit"] != "" && slices.ContainsFunc([]string{"phpunit.xml", "phpunit.xml.dist",
		"phpunit.dist.xml"}, p.has) {
		p.check("test", "vendor/bin/phpunit", "tests", p.src("composer.json", "require-dev.phpunit/phpunit"))
	}
}
