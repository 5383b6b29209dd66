package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"abl/internal/hostfs"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadValuesExactly(t *testing.T) {
	tests := []struct{ in, want string }{
		{`K=plain`, "plain"},
		{`export K=plain`, "plain"},
		{"\texport\tK = plain ", "plain"},
		{`K=a$B$$c${D}$(E)`, "a$B$$c${D}$(E)"},
		{`K="a$B$$c${D}$(E)"`, "a$B$$c${D}$(E)"},
		{`K='a$B$$c${D}'`, "a$B$$c${D}"},
		{`K="a\$b"`, "a$b"},
		{`K=a\$b\n`, `a\$b\n`},
		{`K=a#b`, "a#b"},
		{`K=#ab`, "#ab"},
		{`K="a #b"`, "a #b"},
		{`K='a #b' # note`, "a #b"},
		{`K=a=b==`, "a=b=="},
		{`K=a b c`, "a b c"},
		{`K="  a  "`, "  a  "},
		{`K=a"b'c`, `a"b'c`},
		{`K='a"b"c'`, `a"b"c`},
		{`K="a'b"`, "a'b"},
		{`K="say \"hi\""`, `say "hi"`},
		{`K="ends\\"`, `ends\`},
		{`K='it\'s \d'`, `it\'s \d`},
		{`K="a\nb"`, "a\nb"},
		{"K=\"a\nb\"", "a\nb"},
		{`K=`, ""},
		{`K=""`, ""},
		{`K=''`, ""},
		{"K=crlf\r", "crlf"},
		{"K=\uE000$x\uE001", "\uE000$x\uE001"},
	}
	for _, tt := range tests {
		vars, warnings, err := ReadEnv(write(t, "# first\n"+tt.in+"\nL=2\n"))
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: got warnings %v, error %v, want none", tt.in, warnings, err)
		}
		if diff := cmp.Diff(map[string]string{"K": tt.want, "L": "2"}, vars); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.in, diff)
		}
	}
}

func TestReadSkipsAByteOrderMark(t *testing.T) {
	vars, _, err := ReadEnv(write(t, "\uFEFFK=bom\r\n"))
	if err != nil || vars["K"] != "bom" {
		t.Errorf("file with a byte order mark: got %v, error %v, want K=bom", vars, err)
	}
}

func TestReadWarnings(t *testing.T) {
	path := write(t, "A=x # y # z\nB= # later\nA=2\nC='\n' # fine\nD=x\t#y\n")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	vars, warnings, err := ReadEnv(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "2", "B": "", "C": "\n", "D": "x"}, vars); diff != "" {
		t.Errorf("variables (-want +got)\n%s", diff)
	}
	want := []string{
		`.env:1: the text after " #" is a comment; quote the value of A if it is part of it`,
		`.env:2: the text after " #" is a comment; quote the value of B if it is part of it`,
		`.env:3: A is set again; the last value counts`,
		`.env:6: the text after " #" is a comment; quote the value of D if it is part of it`,
		`.env can be read by others (mode 0644): chmod 600 .env`,
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("warnings (-want +got)\n%s", diff)
	}
}

func TestModes(t *testing.T) {
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o700: "", 0o640: "read", 0o604: "read", 0o620: "changed", 0o602: "changed", 0o666: "changed",
	} {
		path := write(t, "A=1\n")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, warnings, err := ReadEnv(path)
		if err != nil || (want == "") != (len(warnings) == 0) || want != "" && !strings.Contains(warnings[0], "can be "+want+" by others") {
			t.Errorf("mode %04o: got warnings %q, error %v, want one with %q, or none if that is empty",
				mode, warnings, err, want)
		}
	}
}

const notOne = ": want NAME=value, with the whole value in closed quotes, or without quotes"

func TestReadErrorsNameTheLineAndNoValue(t *testing.T) {
	tests := []struct{ in, want string }{
		{"K", ".env:2" + notOne},
		{"K: sesame", ".env:2" + notOne},
		{"1K=sesame", ".env:2" + notOne},
		{"=sesame", ".env:2" + notOne},
		{"K=a\rL=sesame", ".env:2" + notOne}, // lines end as on an old Mac
		{"K-L=sesame", ".env:2" + notOne},
		{`K="sesame`, ".env:2" + notOne},
		{`K='sesame\'`, ".env:2" + notOne},
		{`K="sesame"x`, ".env:2" + notOne},
		{"K=\xff", "cannot read .env: it is not UTF-8 text"},
		{"K=a\x00b", "cannot read .env: it is not UTF-8 text"},
	}
	for _, tt := range tests {
		_, _, err := ReadEnv(write(t, "A=1\n"+tt.in+"\nL=2\n"))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.in, err, tt.want)
		}
	}
}

func TestReadRefusesOtherFiles(t *testing.T) {
	real := write(t, "A=1\n")
	link := filepath.Join(t.TempDir(), ".env")
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path string
		kind error
	}{
		{link, hostfs.ErrNotRegular},
		{t.TempDir(), hostfs.ErrNotRegular},
		{filepath.Join(t.TempDir(), ".env"), hostfs.ErrAbsent},
		{write(t, strings.Repeat("#", maxEnvBytes+1)), hostfs.ErrTooLarge},
	}
	for _, tt := range tests {
		if _, _, err := ReadEnv(tt.path); !errors.Is(err, tt.kind) {
			t.Errorf("got %v, want %v", err, tt.kind)
		}
	}
}

// FuzzRoundTrip holds that every value that can be quoted is read back as it was.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{"", `a$B\`, `"`, `\"`, "a #b", "a\r\nb", `$(x)${Y}\$`, "'", "\uE000", `\\n`} {
		f.Add(seed)
	}
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\r", `\r`)
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			return
		}
		in := "A=1\nK=\"" + quote.Replace(value) + "\"\nL=2\n"
		vars, _, warnings, err := parse(".env", []byte(in))
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%q: got warnings %v, error %v, want none", in, warnings, err)
		}
		if diff := cmp.Diff(map[string]string{"A": "1", "K": value, "L": "2"}, vars); diff != "" {
			t.Fatalf("%q (-want +got)\n%s", in, diff)
		}
	})
}

// FuzzParse checks that no input causes a panic, and that errors quote nothing of it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"A=1\n", "A=\"sesame\n", "A='sesame' x", "export sesame", "\rA=1", "A=sesame\r\rB=2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		vars, _, _, err := parse(".env", []byte(in))
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Fatalf("error: got %v, want one without the value", err)
		}
		for name := range vars {
			if strings.ContainsAny(name, " \t\n=") || name == "" {
				t.Fatalf("name of a variable: got %q, want one without white space and =", name)
			}
		}
	})
}
