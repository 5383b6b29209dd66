package detect

import (
	"slices"
	"strings"

	"abl/internal/toolchain"
)

// java reads the builds of Maven and Gradle.
type java struct{ *project }

const (
	gradleFiles = "build.gradle build.gradle.kts"
	gradleHosts = "maven, services.gradle.org, plugins.gradle.org, github.com, release-assets.githubusercontent.com"
	gradlew     = "./gradlew --no-daemon "
	maven       = "mvn -B -q -Dmaven.repo.local=.m2/repository " // with a repository of its own
)

func (j java) load() {
	if j.has("pom.xml") {
		j.loadMaven()
		return
	}
	j.gradleVersion()
	if from := j.src("gradlew", ""); j.has("gradlew") {
		j.install(from, "GRADLE_USER_HOME=.gradle-home "+gradlew+"assemble", gradleHosts, ".gradle-home build")
		j.set("app.env.GRADLE_USER_HOME", "/workspace/src/"+j.at(".gradle-home"), from)
	}
}

func (j java) loadMaven() {
	from := j.src("pom.xml", "")
	j.version(capture(`<(?:java\.version|maven\.compiler\.release|release)>\s*(\d+)`, j.text("pom.xml")), from)
	j.install(from, maven+"-DskipTests package", "maven", ".m2 target")
}

// version chooses the oldest Java that compiles for the version that the build names, "" for none.
func (j java) version(named string, from Source) {
	if named == "" {
		j.note("toolchain.java", "21", from, "no file names a version")
		return
	}
	for _, line := range toolchain.Lines("java") {
		if atoi(line) >= atoi(named) {
			named = line
			break
		}
	}
	j.choose("java", []wanted{{named, from}})
}

// gradleVersion chooses the Java that the build asks for, or one that its version of Gradle runs on.
func (j java) gradleVersion() {
	from := j.src(j.first(gradleFiles), "")
	if named := capture(`(?:JavaLanguageVersion\.of|jvmToolchain)\((\d+)\)`, j.text(j.first(gradleFiles))); named != "" {
		j.choose("java", []wanted{{named, from}}) // Gradle accepts no other
		return
	}
	const wrapper = "gradle/wrapper/gradle-wrapper.properties"
	gradle := capture(`gradle-(\d+\.\d+)`, j.text(wrapper))
	switch version := numbers(gradle); {
	case gradle == "" || slices.Compare(version, []int{8, 5}) >= 0:
		j.version("", from)
	case slices.Compare(version, []int{7, 3}) >= 0:
		j.note("toolchain.java", "17", j.src(wrapper, ""), "Gradle "+gradle+" runs on it")
	default:
		j.ask("toolchain.java", j.at(wrapper)+" has Gradle "+gradle+", which runs on no Java that abl has (docs/toolchains.md)")
	}
}

func (j java) find() {
	file := j.first("pom.xml " + gradleFiles)
	text := j.text(file)
	boots := strings.Contains(text, "spring-boot-maven-plugin") || strings.Contains(text, "org.springframework.boot")
	web := strings.Contains(text, "spring-boot-starter-web") // or -webflux
	if web {
		j.server("http", j.src(file, "spring-boot-starter-web"))
		j.springPort()
		j.springDatabase()
	}
	if strings.Contains(text, "spring-boot-starter-actuator") {
		j.set("app.ready.path", "/actuator/health", j.src(file, "spring-boot-starter-actuator"))
	}
	if file == "pom.xml" {
		j.findMaven(text, web && boots)
		return
	}
	if !j.has("gradlew") {
		return
	}
	j.check("test", gradlew+"--offline test", "tests", j.src("gradlew", ""))
	if web && boots {
		j.try(gradlew+"--offline classes && "+gradlew+"--offline bootRun", j.src(file, "org.springframework.boot"))
	} else if capture(`\b(application)\b`, text) != "" {
		j.ask("app.command", "the application plugin starts the app, and no file shows whether it is a server",
			candidate(gradlew+"--offline -q run", j.src(file, "plugins.application")))
	}
}

// findMaven records the settings in pom.xml. boots is set if it starts a Spring Boot server.
func (j java) findMaven(text string, boots bool) {
	from := j.src("pom.xml", "")
	j.check("test", maven+"-o test", "tests", from)
	var pom struct {
		Modules []string `xml:"modules>module"`
	}
	j.decode("pom.xml", &pom)
	switch {
	case len(pom.Modules) > 0:
		j.ask("app.command", "pom.xml has several modules: choose one with --dir")
	case boots && match(`spring-boot-starter-parent|<goal>repackage</goal>`, text):
		j.try(maven+"-o -DskipTests package && java -jar target/*.jar", j.src("pom.xml", "spring-boot-maven-plugin"))
	case boots:
		j.try(maven+"-o -DskipTests spring-boot:run", j.src("pom.xml", "spring-boot-maven-plugin"))
	case strings.Contains(text, "quarkus-maven-plugin"):
		from = j.src("pom.xml", "quarkus-maven-plugin")
		j.server("http", from)
		j.addStart(start{
			command: maven + "-o -DskipTests package && java -jar target/quarkus-app/quarkus-run.jar",
			port:    8080,
			from:    from,
		})
	case !strings.Contains(text, "mainClass"):
		j.program("a library", "", from, "")
	}
}

const (
	springFiles = "application.properties application.yml application.yaml"
	localJDBC   = `(?m)^\s*(?:spring\.datasource\.)?url\s*[=:]\s*['"]?(jdbc:\w+://(?:localhost|127\.0\.0\.1)(?::\d+)?[^\s'"]*)`
)

// springDatabase replaces an address on this machine in the settings of Spring Boot by the service with its port.
func (j java) springDatabase() {
	for name := range strings.FieldsSeq(springFiles) {
		file := j.at("src/main/resources/" + name)
		url := capture(localJDBC, j.tree.Text(file))
		from := find(file, j.tree.Text(file), localJDBC)
		address := capture(`//(\w[\w.]*(?::\d+)?)`, url)
		_, port, _ := strings.Cut(address, ":")
		switch service := j.serviceAt(port); {
		case url == "":
		case service == "":
			j.say("%s: spring.datasource.url is an address on this machine, and no service in the repository uses this port", from)
		default:
			url = strings.Replace(url, address, service+":"+port, 1)
			j.note("app.env.SPRING_DATASOURCE_URL", url, from, "the service instead of this machine")
		}
	}
}

const serverPort = `(?m)^server\.port\s*[=:]\s*(?:\$\{[^:}]*:)?(\d+)` +
	`|^server:\s*\n(?:[ \t]+.*\n)*?[ \t]+port:\s*(?:\$\{[^:}]*:)?(\d+)`

// springPort records the port in the settings of Spring Boot, or its default.
func (j java) springPort() {
	for name := range strings.FieldsSeq(springFiles) {
		file := j.at("src/main/resources/" + name)
		if text := j.tree.Text(file); match(serverPort, text) {
			j.matches(file, text, serverPort)
			return
		}
	}
	j.listens("8080", Source{File: "Spring Boot", Place: "default port"})
}
