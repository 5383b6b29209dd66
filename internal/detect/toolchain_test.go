package detect

import (
	"strings"
	"testing"
)

// The toolchain has the version that the files ask for. If abl does not have it, the key is open, with the
// versions that there are.
func TestToolchain(t *testing.T) {
	pom := func(version string) map[string]string {
		return map[string]string{"pom.xml": "<project><properties>" + version + "</properties></project>"}
	}
	gradle := func(build, version string) map[string]string {
		return map[string]string{
			"build.gradle": build, "gradle/wrapper/gradle-wrapper.properties": "distributionUrl=x/gradle-" + version + "-bin.zip",
		}
	}
	for _, tt := range []struct {
		name        string
		files       map[string]string
		key         string
		value, open string
	}{
		{"Maven", pom(""), "java", "21", ""},
		{"Maven for Java 8", pom("<java.version>1.8</java.version>"), "java", "17", ""},
		{"Maven for Java 17", pom("<maven.compiler.release>17</maven.compiler.release>"), "java", "17", ""},
		{"Maven for Java 22", pom("<release>22</release>"), "java", "25", ""},
		{"Maven for Java 26", pom("<java.version>26</java.version>"), "java", "", "pom.xml asks for Java 26, and abl has 17, 21 or 25"},
		{"Gradle", gradle("", "8.5"), "java", "21", ""},
		{"Gradle for Java 17", gradle("", "7.6.4"), "java", "17", ""},
		{"Gradle that is too old", gradle("", "6.8"), "java", "", "has Gradle 6.8, which runs on no Java that abl has"},
		{"one Java", gradle("JavaLanguageVersion.of(25)", "9.1"), "java", "25", ""},
		{"one Java of Kotlin", gradle("jvmToolchain(17)", "8.5"), "java", "17", ""},
		{"another Java", gradle("JavaLanguageVersion.of(11)", "8.5"), "java", "", "build.gradle asks for Java 11, and abl has"},
		{"Cargo", map[string]string{"Cargo.toml": ""}, "rust", "1.85", ""},
		{"an older Rust", map[string]string{"Cargo.toml": `rust-version = "1.70"`}, "rust", "1.85", ""},
		{"a newer Rust", map[string]string{"Cargo.toml": `rust-version = "1.90"`}, "rust", "",
			"Cargo.toml asks for Rust >=1.90, and abl has 1.85"},
		{"a newer channel", map[string]string{"Cargo.toml": "", "rust-toolchain": "1.90.0\n"}, "rust", "",
			"rust-toolchain asks for Rust >=1.90, and abl has 1.85"},
		{"a stable channel", map[string]string{"Cargo.toml": "", "rust-toolchain": "stable\n"}, "rust", "1.85", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Read(t.Context(), files(tt.files), "", Wish{})
			if got := r.Get("toolchain." + tt.key); got != tt.value {
				t.Errorf("got %q, want %q", got, tt.value)
			}
			var open string
			for _, o := range r.Open {
				if o.Key == "toolchain."+tt.key {
					open = o.Why
				}
			}
			if !strings.Contains(open, tt.open) || (open == "") != (tt.open == "") {
				t.Errorf("got the open key %q, want %q", open, tt.open)
			}
			if len(r.Packages) > 0 {
				t.Errorf("got the packages %v, want none: the toolchain has them", r.Packages)
			}
		})
	}
}
