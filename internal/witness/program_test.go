package witness

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"abl/internal/helper"
)

// runOf returns the exchange of a run with these arguments, some output and a file.
func runOf(t *testing.T, ran helper.AppRan, args ...string) Exchange {
	t.Helper()
	for _, arg := range args {
		ran.Args = append(ran.Args, []byte(arg))
	}
	got, err := json.Marshal(ran)
	if err != nil {
		t.Fatal(err)
	}
	return Exchange{Method: "POST", Target: RunTarget, Status: 200, Got: Body{Bytes: int64(len(got)), Begins: got}}
}

func TestReadRun(t *testing.T) {
	for _, c := range []struct{ contract, want string }{
		{"`count words` with three words on standard input → prints 3, exit code 0", "[words] exit [0], the line \"3\" in standard output"},
		{"`count words FILE INTO` → the number of words of FILE stands in INTO, and nothing is printed", "[words] exit [], nothing on standard output"},
		{"`count` without arguments → exit code 2", "[] exit [2], "},
		{"run `notes add TEXT` → prints the id of the new note and exits with code 0", "[add] exit [0], output and files"},
		{"`notes import --dry-run FILE OUT` → OUT holds two ids, exit status 0", "[import --dry-run] exit [0], output and files"},
		{"`notes rm ID` → exit code 0, and the note is gone", "[rm] exit [0], "},
		{"`notes rm ID` → exit code 0, then `notes list` prints nothing", "[rm] exit [0], "},
		{"`echo a | greet --loud NAME < in.txt` → \"HELLO\"", "[--loud] exit [], the line \"HELLO\" in standard output"},
		{"greet → prints hello", "[] exit [], output and files"},
		{"`greet` → an exit code other than 0", "[] exit [1-255], "},
		{"`greet` → exit code 0 or 1", "no"},
		{"`greet` → prints hello if NAME is set", "no"},
		{"`notes rm ID` → the note is gone", "no"},
	} {
		t.Run(rowName(c.contract), func(t *testing.T) {
			action, result, _ := strings.Cut(c.contract, " → ")
			got, claim := "no", Claim{}
			if read, ok := ReadRun(action, result); ok {
				data, err := json.Marshal(read) // a witness in a container reads it again
				if err == nil {
					err = json.Unmarshal(data, &claim)
				}
				if err != nil {
					t.Fatal(err)
				}
				got = fmt.Sprintf("%v exit %v, %s", claim.words, claim.statuses, strings.Join(claim.readOfRun(), ", "))
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A claim fits a run with its words and its exit code.
func TestRunFits(t *testing.T) {
	claim, _ := ReadRun("`count words -o INTO`", "exit code 0")
	other := runOf(t, helper.AppRan{}, "words", "-o", "x")
	other.Target = "/run/health"
	for _, c := range []struct {
		name string
		x    Exchange
		want bool
	}{
		{"its words, and others between", runOf(t, helper.AppRan{}, "words", "in.txt", "-o", "x"), true},
		{"its option first", runOf(t, helper.AppRan{}, "-o", "x", "words"), true},
		{"one word less", runOf(t, helper.AppRan{}, "words"), false},
		{"another exit code", runOf(t, helper.AppRan{Exit: 2}, "words", "-o", "x"), false},
		{"no run", runOf(t, helper.AppRan{Error: "too many"}, "words", "-o", "x"), false},
		{"a declared command", other, false},
		{"nothing", Exchange{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := claim.Fits(c.x); got != c.want {
				t.Errorf("it fits: got %t, want %t", got, c.want)
			}
		})
	}
	count, _ := ReadRun("`count words each 2`", "prints 2")
	for arg, want := range map[string]bool{"2": true, "3": false} {
		x := runOf(t, helper.AppRan{Stdout: []byte("2\n")}, "words", "a", arg)
		if got := count.Loose().Fits(x); got != want || count.Fits(x) {
			t.Errorf("argument %s: got a fit of the loose claim %t, of the claim %t, want %t, false",
				arg, got, count.Fits(x), want)
		}
	}
}

// testdata/runs.txt has contracts of programs, and runs that fit them or not.
func TestOutputFits(t *testing.T) {
	part := func(parts []string, i int) []byte {
		if i >= len(parts) {
			return nil
		}
		return []byte(strings.ReplaceAll(strings.TrimSpace(parts[i]), `\n`, "\n"))
	}
	eachExchange(t, "testdata/runs.txt", func(t *testing.T, action, result, line string) string {
		claim, ok := ReadRun(action, result)
		if !ok {
			t.Fatalf("claim of %s → %s: got none, want one", action, result)
		}
		args, rest, _ := strings.Cut(line, "⇒")
		parts := strings.Split(rest, "|")
		exit, err := strconv.Atoi(strings.TrimSpace(parts[0]))
		if err != nil {
			t.Fatal(err)
		}
		ran := helper.AppRan{Exit: exit, Stdout: part(parts, 1), Stderr: part(parts, 2)}
		if file := part(parts, 3); file != nil {
			ran.Files = map[string][]byte{"out": file}
		}
		x := runOf(t, ran, strings.Fields(args)...)
		if !claim.Asked(x) {
			return "it is another run"
		}
		return claim.Misses(x)
	})
}

// The tests get an altered run from the proxy. Other runs pass unchanged. The record has the
// original.
func TestAlterRun(t *testing.T) {
	const printed = `{"args":["aGk="],"exit":0,"stdout":"aGkK","stderr":"aGkK","files":{"a":"aGkK"},"left":["b"]}`
	for _, c := range []struct {
		name, contract, answer string
		status, named          string // "" is as it was
	}{
		{"it prints", "`say hi` → prints hi, exit code 0", printed,
			`{"args":["aGk="],"exit":1,"stdout":"aGkK","stderr":"aGkK","files":{"a":"aGkK"},"left":["b"]}`, `{"args":["aGk="],"exit":0,"left":["b"]}`},
		{"it prints nothing", "`say hi` → nothing is printed, exit code 7", `{"args":["aGk="],"exit":7,"stdout":"Cg=="}`,
			`{"args":["aGk="],"exit":0,"stdout":"Cg=="}`, `{"args":["aGk="],"exit":7,"stdout":"YWx0ZXJlZAo="}`},
		{"no exit code is named", "`say hi` → prints hi", printed, "", `{"args":["aGk="],"exit":0,"left":["b"]}`},
		{"another exit code", "`say hi` → prints hi, exit code 3", printed, "", ""},
		{"another run", "`say ho` → prints hi, exit code 0", printed, "", ""},
		{"no run", "`say hi` → prints hi, exit code 0", `{"exit":0,"error":"stopped"}`, "", ""},
		{"no answer of a broker", "`say hi` → prints hi, exit code 0", "hello", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			action, result, _ := strings.Cut(c.contract, " → ")
			claim, ok := ReadRun(action, result)
			if !ok {
				t.Fatalf("claim of %s: got none, want one", c.contract)
			}
			app := rawApp(t, map[string]string{RunTarget: answerOf("200 OK", isJSON, c.answer)})
			for what, want := range map[Alteration]string{OfStatus: c.status, OfNamed: c.named} {
				altered, seen := want != "", make(chan Exchange, 1)
				if !altered {
					want = c.answer
				}
				p := Proxy{To: app, Seen: func(x Exchange) { seen <- x }, Altering: &Altering{[]Altered{{claim, what}, {claim, what}}}}
				got := say(t, start(t, p.Serve), "POST "+RunTarget+" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
				if got != answerOf("200 OK", isJSON, want) {
					t.Errorf("%s: got %q, want the body %s", what, got, want)
				}
				if x := <-seen; x.Altered != altered || string(x.Got.Begins) != c.answer {
					t.Errorf("%s: got record %+v, want the run of the program, altered %t", what, x, altered)
				}
			}
		})
	}
}

// A run that fits several contracts gets all alterations of theirs, so that the test of each can
// detect its own.
func TestAlterRunOfTwoContracts(t *testing.T) {
	const printed, want = `{"args":["aGk="],"exit":0,"stdout":"aGkK"}`, `{"args":["aGk="],"exit":1}`
	code, _ := ReadRun("`say hi`", "exit code 0")
	output, _ := ReadRun("`say hi` to all", "prints hi")
	app := rawApp(t, map[string]string{RunTarget: answerOf("200 OK", isJSON, printed)})
	for name, all := range map[string][]Altered{
		"the exit code first": {{code, OfStatus}, {output, OfNamed}},
		"the output first":    {{output, OfNamed}, {code, OfStatus}},
		"the exit code twice": {{code, OfStatus}, {output, OfNamed}, {code, OfStatus}},
	} {
		t.Run(name, func(t *testing.T) {
			p := Proxy{To: app, Seen: func(Exchange) {}, Altering: &Altering{all}}
			got := say(t, start(t, p.Serve), "POST "+RunTarget+" HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
			if got != answerOf("200 OK", isJSON, want) {
				t.Errorf("got %q, want the body %s", got, want)
			}
		})
	}
}
