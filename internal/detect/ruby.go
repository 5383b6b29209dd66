package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// ruby reads the projects of Bundler.
type ruby struct{ *project }

const gem = `(?m)^\s*gem\s+['"]([\w-]+)['"]`

// gemPackages are the Debian packages that gems are compiled with.
var gemPackages = [][2]string{{"pg", "libpq-dev"}, {"sqlite3", "libsqlite3-dev"}, {"mysql2", "libmariadb-dev"}}

func (r ruby) load() {
	r.needs(r.src("Gemfile", ""), "ruby-dev bundler build-essential libyaml-dev")
	from := r.src(r.first("Gemfile.lock Gemfile"), "")
	r.install(from, "BUNDLE_PATH=vendor/bundle bundle install", "rubygems.org, index.rubygems.org", "vendor")
	r.set("app.env.BUNDLE_PATH", "vendor/bundle", from)
	for _, m := range captures(gem, r.text("Gemfile")) {
		r.deps[m[1]] = r.src("Gemfile", m[1])
	}
	if match(`(?m)^\s*gemspec\b`, r.text("Gemfile")) {
		for _, m := range captures(`\.add_(?:\w+_)?dependency\(?\s*['"]([\w-]+)`, r.text(r.gemspec())) {
			r.deps[m[1]] = r.src(r.gemspec(), m[1])
		}
	}
	for _, g := range gemPackages {
		if from, ok := r.deps[g[0]]; ok {
			r.needs(from, g[1])
		}
	}
}

// gemspec returns the file that describes the project as a gem, "" for none.
func (r ruby) gemspec() string {
	for _, file := range r.tree.Below(r.dir, func(name string) bool { return path.Ext(name) == ".gemspec" }) {
		if inner := r.inner(file); !strings.Contains(inner, "/") {
			return inner
		}
	}
	return ""
}

// findPrograms records the programs of the gem.
func (r ruby) findPrograms() {
	text, dir := r.text(r.gemspec()), "exe"
	if named := capture(`\.bindir\s*=\s*['"](\w+)`, text); named != "" || strings.Contains(text, ".executables") && !r.hasFolder(dir) {
		dir = cmp.Or(named, "bin")
	}
	for _, file := range r.tree.Below(r.at(dir), nil) {
		if !slices.Contains(fields("console setup rake rspec rubocop bundle release"), path.Base(file)) {
			r.program("a program", `BUNDLE_GEMFILE="$ABL_SRC/Gemfile" BUNDLE_PATH="$ABL_SRC/vendor/bundle" `+
				`bundle exec ruby "$ABL_SRC/`+r.inner(file)+`"`, Source{File: file}, "")
		}
	}
}

func (r ruby) find() {
	has := func(name string) bool { return r.deps[name].File != "" }
	file := r.first("app.rb server.rb main.rb")
	switch {
	case has("rails"):
		r.server("http", r.deps["rails"])
		r.set("app.env.RAILS_DEVELOPMENT_HOSTS", "app", r.deps["rails"])
		r.startRails(r.deps["rails"])
	case r.has("config.ru") && (has("sinatra") || has("puma") || has("rackup") || has("roda")):
		r.server("http", r.src("config.ru", ""))
		r.serve("bundle exec rackup -o 0.0.0.0 -p 9292", r.src("config.ru", ""))
	case has("sinatra") && file != "":
		r.server("http", r.deps["sinatra"])
		r.serve("bundle exec ruby "+file+" -o 0.0.0.0 -p 4567", r.src(file, ""))
	}
	if capture(`("/up"|get ['"]up['"])`, r.text("config/routes.rb")) != "" {
		r.set("app.ready.path", "/up", r.src("config/routes.rb", ""))
	}
	r.findPorts()
	for _, file := range r.sources("ruby") {
		r.route(file, r.code(file))
	}
	r.findPrograms()
	r.rubyVersion()
	for _, c := range [][3]string{
		{"rubocop", "lint", "bundle exec rubocop"},
		{"rspec", "test", "bundle exec rspec"},
		{"rspec-rails", "test", "bundle exec rspec"},
	} {
		if from, ok := r.deps[c[0]]; ok {
			r.check(c[1], c[2], c[1], from)
		}
	}
	if has("rails") && r.hasFolder("test") {
		r.check("test", "bundle exec rails test", "tests", r.deps["rails"])
	}
}

const (
	rubyPorts = `ENV\.fetch\(\s*['"]PORT['"]\s*(?:,\s*['"]?(\d{2,5})|\)\s*\{\s*['"]?(\d{2,5}))` +
		`|ENV\[['"]PORT['"]\]\s*\|\|\s*['"]?(\d{2,5})|(?m)^\s*(?:set :port,|port)\s+(\d{2,5})`
	rubyPORT = `['"]PORT['"]`
)

// findPorts records the ports in the settings of Puma and in the program.
func (r ruby) findPorts() {
	for file := range strings.FieldsSeq("config/puma.rb config.ru app.rb server.rb") {
		text := r.text(file)
		r.matches(r.at(file), text, rubyPorts)
		if match(rubyPORT, text) {
			r.readsPort(r.src(file, ""))
		}
	}
}

// startRails records how Rails starts, unless its version does not run on the Ruby of Debian 13.
func (r ruby) startRails(from Source) {
	version := capture(`(?m)^ {4}rails \((\d+)\.[\d.]+\)|gem ['"]rails['"],\s*['"][~>= ]*(\d+)\.`,
		r.text("Gemfile.lock")+"\n"+r.text("Gemfile"))
	if version != "" && atoi(version) < 7 {
		r.forbid("app.command", "Rails "+version+" does not run on Ruby 3.3, which Debian 13 has: "+
			"it needs a Dockerfile (docs/toolchains.md)")
		return
	}
	r.serve("bundle exec rails db:prepare && bundle exec rails server -b 0.0.0.0 -p 3000",
		from)
}

// rubyVersion reports a version that Bundler insists on.
func (r ruby) rubyVersion() {
	gemfile := r.text("Gemfile")
	want := capture(`(?m)^ruby ['"]([\d.]+)['"]`, gemfile)
	if named := capture(`(?m)^ruby file: ['"]([\w.-]+)['"]`, gemfile); named != "" {
		want = capture(`(?m)^(?:ruby[- ])?(\d[\d.]*)`, r.text(named))
	}
	if want != "" {
		r.say("%s requires exactly Ruby %s, and Debian 13 has 3.3: Bundler refuses other versions", r.at("Gemfile"), want)
	}
}
