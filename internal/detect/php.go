package detect

import (
	"path"
	"strings"
)

// php reads the projects of Composer.
type php struct {
	*project
	manifest struct {
		Require    map[string]string `json:"require"`
		RequireDev map[string]string `json:"require-dev"`
		Scripts    map[string]any    `json:"scripts"`
		Bin        any               `json:"bin"`
	}
}

func (p *php) load() {
	manifest := p.src("composer.json", "")
	p.decode("composer.json", &p.manifest)
	for name := range p.manifest.Require {
		p.deps[name] = p.src("composer.json", "require."+name)
	}
	p.needs(manifest, "php-cli php-xml php-mbstring php-curl php-sqlite3 composer unzip")
	if want := p.manifest.Require["php"]; want != "" && !satisfies([]int{8, 4, 0}, want) {
		p.say("%s asks for PHP %s, and Debian 13 has 8.4: another version needs a Dockerfile (docs/toolchains.md)",
			p.at("composer.json"), want)
	}
	if strings.Contains(p.text("composer.json"), "pgsql") {
		p.needs(p.src("composer.json", "require"), "php-pgsql")
	}
	p.install(p.src(p.first("composer.lock composer.json"), ""), "composer install --no-interaction --no-progress",
		"repo.packagist.org, api.github.com, codeload.github.com", "vendor")
}

func (p *php) find() {
	switch file := p.first("artisan public/index.php index.php"); {
	case file != "":
		p.server("http", p.src(file, ""))
		command := "php -S 0.0.0.0:8000"
		if dir := path.Dir(file); dir != "." {
			command += " -t " + dir
		}
		if file == "artisan" {
			command = p.laravel()
		}
		p.serve(command, p.src(file, ""))
	case p.manifest.Bin != nil:
		p.findPrograms()
	default:
		p.library(p.src("composer.json", ""), `cd "$ABL_SRC" && php`, "tests pass code to php -r")
	}
	for name := range strings.FieldsSeq("test lint") {
		if p.manifest.Scripts[name] != nil {
			p.check(name, "composer "+name, name, p.src("composer.json", "scripts."+name))
		}
	}
	if p.manifest.RequireDev["phpunit/phpunit"] != "" && p.first("phpunit.xml phpunit.xml.dist phpunit.dist.xml") != "" {
		p.check("test", "vendor/bin/phpunit", "tests", p.src("composer.json", "require-dev.phpunit/phpunit"))
	}
	if p.manifest.RequireDev["pestphp/pest"] != "" {
		p.check("test", "vendor/bin/pest", "tests", p.src("composer.json", "require-dev.pestphp/pest"))
	}
}

// findPrograms records the programs of the composer.json.
func (p *php) findPrograms() {
	all, _ := p.manifest.Bin.([]any)
	for _, file := range append(all, p.manifest.Bin) {
		name, _ := file.(string)
		command := ""
		if p.has(name) {
			command = `php "$ABL_SRC/` + path.Clean(name) + `"`
		}
		p.program("a program", command, p.src("composer.json", "bin"), "")
	}
}

// laravel returns the command that prepares the database of .env.example and starts Laravel's server.
func (p *php) laravel() string {
	command := "php artisan serve --host=0.0.0.0 --port=8000"
	if p.hasFolder("database/migrations") {
		command = "php artisan migrate --force && " + command
	}
	if p.sampleEnv()["DB_CONNECTION"].Value == "sqlite" {
		command = "touch database/database.sqlite && " + command
	}
	p.note("app.env.APP_KEY", "base64:"+strings.Repeat("A", 43)+"=", p.src("artisan", ""),
		"for tests: Laravel does not start without a key")
	if strings.Contains(p.text("bootstrap/app.php"), "health: '/up'") {
		p.set("app.ready.path", "/up", p.src("bootstrap/app.php", ""))
	}
	return command
}
