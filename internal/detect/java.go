package detect

import (
	"encoding/xml"
	"path"
	"regexp"
	"slices"
	"strings"
)

// pom is what abl reads of a pom.xml.
type pom struct {
	ArtifactID string   `xml:"artifactId"`
	Packaging  string   `xml:"packaging"`
	Modules    []string `xml:"modules>module"`
	Parent     struct {
		ArtifactID string `xml:"artifactId"`
	} `xml:"parent"`
	Properties struct {
		Java    string `xml:"java.version"`
		Release string `xml:"maven.compiler.release"`
	} `xml:"properties"`
	Dependencies []struct {
		ArtifactID string `xml:"artifactId"`
	} `xml:"dependencies>dependency"`
	Plugins []struct {
		ArtifactID string `xml:"artifactId"`
	} `xml:"build>plugins>plugin"`
}

// maven runs Maven with a repository of the project's own.
const maven = "mvn -B -q -Dmaven.repo.local=.m2/repository "

func loadJava(p *project) {
	if p.has("pom.xml") {
		from := p.src("pom.xml", "")
		jdk := "default-jdk-headless"
		m := regexp.MustCompile(`<(?:java\.version|maven\.compiler\.release` +
			`|release)>\s*(\d+)`).FindStringSubmatch(p.text("pom.xml"))
		if m != nil && atoi(m[1]) > 21 {
			jdk = "openjdk-25-jdk-headless"
		}
		if m != nil && atoi(m[1]) > 25 {
			p.say("%s asks for Java %s, and Debian 13 has 21 and 25: another version needs a Dockerfile (docs/toolchains.md)",
				p.at("pom.xml"), m[1])
		}
		p.needs(from, jdk, "maven")
		p.set("app.prepare", maven+"-DskipTests package", from)
		p.set("network.allow", "maven", from)
		p.makes(".m2")
		p.makes("target")
		return
	}
	from := p.src(p.first("build.gradle", "build.gradle.kts"), "")
	p.needs(from, p.jdk())
	if p.has("gradlew") {
		p.set("app.prepare", "GRADLE_USER_HOME=.gradle-home ./gradlew --no-daemon assemble", p.src("gradlew", ""))
		p.set("app.env.GRADLE_USER_HOME", "/workspace/src/"+path.Join(p.dir, ".gradle-home"), p.src("gradlew", ""))
		p.set("network.allow",
			"maven, services.gradle.org, plugins.gradle.org, github.com, release-assets.githubusercontent.com", p.src("gradlew", ""))
		p.makes(".gradle-home")
		p.makes("build")
	}
}

// jdk is the newest Java of Debian that the version of Gradle runs on.
func (p *project) jdk() string {
	build := p.text(p.first("build.gradle", "build.gradle.kts"))
	if m := regexp.MustCompile(`JavaLanguageVersion\.of\((\d+)\)`).FindStringSubmatch(build); m != nil {
		if slices.Contains([]string{"17", "21", "25"}, m[1]) {
			return "openjdk-" + m[1] + "-jdk-headless" // Gradle takes no other
		}
		p.forbid("app.command", p.at(p.first("build.gradle",
			"build.gradle.kts"))+" asks for Java "+m[1]+", and Debian 12 and 13 have 17, 21 and 25 (docs/toolchains.md)")
	}
	file := "gradle/wrapper/gradle-wrapper.properties"
	m := regexp.MustCompile(`gradle-(\d+)\.(\d+)`).FindStringSubmatch(p.text(file))
	if m == nil {
		return "default-jdk-headless"
	}
	switch version := []int{atoi(m[1]), atoi(m[2])}; {
	case slices.Compare(version, []int{8, 5}) >= 0:
		return "default-jdk-headless"
	case slices.Compare(version, []int{7, 3}) < 0:
		p.forbid("app.command",
			p.at(file)+" names Gradle "+m[1]+"."+m[2]+", which runs on no Java of Debian 12 or 13 (docs/toolchains.md)")
	}
	return "openjdk-17-jdk-headless"
}

func readJava(p *project) {
	text, file := p.text("pom.xml"), "pom.xml"
	if text == "" {
		file = p.first("build.gradle", "build.gradle.kts")
		text = p.text(file)
	}
	from := p.src(file, "")
	spring := strings.Contains(text, "spring-boot-starter-web") || strings.Contains(text, "spring-boot-starter-webflux")
	boot := strings.Contains(text, "spring-boot-maven-plugin") || strings.Contains(text, "org.springframework.boot")
	if spring {
		p.server("http", p.src(file, "spring-boot-starter-web"))
		p.springPort()
	}
	if strings.Contains(text, "spring-boot-starter-actuator") {
		p.set("app.ready.path", "/actuator/health", p.src(file, "spring-boot-starter-actuator"))
	}
	switch {
	case file == "pom.xml":
		p.check("test", maven+"-o test", "tests", from)
		p.mavenStart(text, spring && boot, from)
	case p.has("gradlew"):
		p.check("test", "./gradlew --no-daemon --offline test", "tests", p.src("gradlew", ""))
		if spring && boot {
			p.try(start{command: "./gradlew --no-daemon --offline bootRun", from: p.src(file, "org.springframework.boot")})
		} else if regexp.MustCompile(`\bapplication\b`).MatchString(text) {
			p.ask("app.command", "the application plugin starts it, and nothing says whether it is a server",
				Fact{Key: "app.command", Value: "./gradlew --no-daemon --offline -q run", From: p.src(file, "plugins.application")})
		}
	}
}

func (p *project) mavenStart(text string, boots bool, from Source) {
	var m pom
	if err := xml.Unmarshal([]byte(text), &m); err != nil {
		p.say("%s cannot be read: %v", from.File, err)
	}
	switch {
	case boots && len(m.Modules) == 0:
		p.try(start{command: maven + "-o -DskipTests spring-boot:run", from: p.src("pom.xml", "spring-boot-maven-plugin")})
	case len(m.Modules) > 0:
		p.ask("app.command", "pom.xml has several modules: --dir names one")
	case strings.Contains(text, "quarkus-maven-plugin"):
		p.server("http", p.src("pom.xml", "quarkus-maven-plugin"))
		p.try(start{command: maven + "-o -DskipTests package && java -jar target/quarkus-app/quarkus-run.jar", port: 8080,
			from: p.src("pom.xml", "quarkus-maven-plugin")})
	case !strings.Contains(text, "mainClass"):
		p.program("a library", from)
	}
}

// springPort is the port that the settings of Spring Boot name, or its own.
func (p *project) springPort() {
	for _, name := range []string{"application.properties", "application.yml", "application.yaml"} {
		file := "src/main/resources/" + name
		text := p.text(file)
		m := regexp.MustCompile(`(?m)^server\.port\s*[=:]\s*(?:\$\{[^:}]*:)?(\d+)` +
			`|^server:\s*\n(?:[ \t]+.*\n)*?[ \t]+port:\s*(?:\$\{[^:}]*:)?(\d+)`)
		if m.MatchString(text) {
			p.portsIn(p.at(file), text, m)
			return
		}
	}
	p.listens(8080, Source{File: "Spring Boot", Place: "its own port"})
}
