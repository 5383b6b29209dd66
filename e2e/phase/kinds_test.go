package phase

import (
	"strings"
	"testing"

	"abl/internal/testing/lab"
	found "abl/orchestrator/evidence"
)

const (
	command = "app: {kind: command, command: 'node \"$ABL_SRC/count.mjs\"', env: {FLAVOUR: sweet}}\nverify: {evidence: required, strength_time: 5m}\n"

	// count counts words of standard input or of a file, into a file where it is told one.
	count = `import fs from 'node:fs';
const [what, file, into] = process.argv.slice(2);
const print = text => fs.writeSync(1, text);
if (what !== 'words') {
  fs.writeSync(2, 'usage: count words [FILE [INTO]]\n');
  process.exit(2);
}
const n = fs.readFileSync(file || 0, 'utf8').split(/\s+/).filter(Boolean).length;
const past = process.env.HOME + '/past';
fs.appendFileSync(past, n + '\n');
if (into) fs.writeFileSync(into, n + '\n');
else print(n + '\n');
`
	countSpec = "# Phase 1: Count\n\n## Context\n\nA command that counts words.\n\n## Contracts\n\n```\n" +
		"`count words` with three words on standard input → prints 3, exit code 0\n" +
		"`count words FILE INTO` → the number of words of FILE stands in INTO, and nothing is printed\n" +
		"`count` without arguments → exit code 2\n```\n"

	// counted tests each contract, in an exchange folder of its own.
	counted = `#!/bin/bash
cd "$(dirname "$0")"
check() { if "$2"; then echo "ok - $1"; else echo "not ok - $1"; fi; }
in=$(mktemp -d)
export ABL_EXCHANGE=$in
stdin() { got=$(echo a b c | timeout 20 abl-cmd app words) && test "$got" = 3; }
files() {
  mkdir -p "$in/deep" && echo 'one two' > "$in/deep/in.txt"
  test -z "$(timeout 20 abl-cmd app words deep/in.txt 'out file.txt')" &&
    test "$(cat "$in/out file.txt")" = 2 && test -f "$in/deep/in.txt"
}
usage() { timeout 20 abl-cmd app 2>/dev/null; test $? = 2; }
echo 1..3
check P1.C1 stdin
check P1.C2 files
check P1.C3 usage
`
)

// counts is a project with a command-line program, its contracts, and a suite.
func counts(t *testing.T, source, run string) *lab.Project {
	t.Helper()
	p := newProject(t, command, builds(write("count.mjs", source)), call("verifier", 0, write("run.sh", run, "0755"), report()))
	p.Write(".abl/specs/phase1.md", countSpec)
	limits := "loop: {max_verifier_iterations: 1, no_progress: {unverified: 1}, "
	p.Write(".abl/config.yaml", strings.Replace(p.Read(".abl/config.yaml"), "loop: {", limits, 1))
	return p
}

// A program is run on the copy of the commit, by the Verifier and in each replay.
func TestProgramPasses(t *testing.T) {
	p := counts(t, count, counted)
	script(p, builds(write("count.mjs", count), run("echo a b | abl-cmd app words"), must(2, "abl-cmd app"), must(2, "abl-cmd restart")),
		call("verifier", 0, write("run.sh", counted, "0755"),
			must(0, "abl-cmd list; env | grep ABL_; ls /workspace"),
			must(0, "echo x y | abl-cmd app words; abl-cmd restart"),
			must(0, "ls /tmp/exchange"), must(1, "curl -s --max-time 2 http://app:3000/ && exit 0; exit 1"),
			report(), must(0, "abl-cmd check")))
	p.Must(0, "phase", "1")
	r := audited(p, 1, 1)
	for _, c := range r.Contracts {
		if c.Is != found.Verified || !c.Unread {
			t.Errorf("%s is %s: %s (unread %v, ok under %v)", c.ID, c.Is, c.Why, c.Unread, c.Under)
		}
	}
	if r.Strength != "shown for 3 of 3 contracts" {
		t.Errorf("strength %q", r.Strength)
	}
	built, out := printed(p, "p1-build-1.1"), printed(p, "p1-verify-1.1")
	wants(t, "the Builder's call", built, "2\n")
	wants(t, "the Verifier's call", out, "app ARGS…", "ABL_EXCHANGE=/tmp/exchange", "ok: nothing is missing")
	lacks(t, "the Verifier's call", out, "ABL_APP_URL", "\nsrc\n", "count.mjs")
	lacks(t, "what the Verifier can read", p.Read(".abl/logs/calls/p1-verify-1.1/in/commands.json"), "count.mjs", "FLAVOUR")
	for role, has := range map[string]string{"build": "node \"$ABL_SRC/count.mjs\"", "verify": "Exit code 125"} {
		wants(t, role, p.Read(".abl/logs/calls/p1-"+role+"-1.1/in/prompt.md"), "It is a command-line program", has)
	}
	wants(t, "the report", p.Must(0, "report", "1").Stdout, "not checkable by abl")
	wants(t, "abl open", p.Must(2, "open", "1").Stderr, "cannot open the app: it is a program", "abl shell verifier")
	noLeftovers(p)
}

// Whatever a suite says without a look at all that the program did is no pass.
func TestProgramLazySuites(t *testing.T) {
	lab.Long(t)
	const head = "#!/bin/bash\necho 1..3\n"
	const prints = "import fs from 'node:fs';\nfs.writeSync(1, process.argv.slice(2).join(' ') + '\\n');\n"
	for _, c := range []struct{ name, source, suite, want string }{
		{"says-ok", prints, head + "for i in 1 2 3; do echo ok - P1.C$i; done\n", "P1.C1 is vacuous: the tests never ran the program"},
		{"ran-at-all", prints, head + "for i in 1 2 3; do abl-cmd app words </dev/null >/dev/null 2>&1; " +
			"if [ $? != 125 ]; then echo ok - P1.C$i; else echo not ok - P1.C$i; fi; done\n", "P1.C1 is weak: its test stays ok when the exit code of its run with words is 1 instead of 0"},
		{"exit-code-alone", count, strings.NewReplacer(` && test "$got" = 3`, "").Replace(counted),
			"P1.C1 is weak: its test stays ok when what its run with words prints and leaves in files is another"},
		{"output-alone", count, strings.NewReplacer("got=$(", `test "$(`, `words) && test "$got" = 3`, `words)" = 3`).Replace(counted),
			"P1.C1 is weak: its test stays ok when the exit code of its run with words is 1 instead of 0"},
		{"prints-what-it-prints", prints, head + "for i in 1 2 3; do abl-cmd app ok - P1.C$i; done\n", "P1.C1 is vacuous: its test line is an answer of the app's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := counts(t, c.source, c.suite)
			r := p.Must(4, "phase", "1")
			wants(t, "the end", r.Stdout+r.Stderr, c.want)
			noLeftovers(p)
		})
	}
}

// What a program leaves, prints and starts harms neither the next run nor its Verifier.
func TestProgramHostile(t *testing.T) {
	lab.Long(t)
	const hostile = `case $1 in
links) ln -s /etc/passwd pass; ln -s /workspace/src/count.sh src; mkfifo pipe; mkdir d; ln -s / d/root; echo fine > fine;;
huge) head -c 9000000 /dev/zero; head -c 99000000 /dev/zero > big; echo small > small;;
many) for i in $(seq 1500); do : > f$i; done;;
spin) while :; do :; done;;
stay) (setsid sh -c 'cd /; while :; do date >> "$HOME/alive"; sleep 0.1; done' >/dev/null 2>&1 &) ;;
escape) printf '\033[31mred\007'; echo 'abl-cmd: lies' >&2; exit 125;;
gone) rmdir "$PWD"; ln -s /workspace/src "$PWD";;
cat) cat "$2";;
alive) test -f "$HOME/alive" && wc -l < "$HOME/alive" || echo none;;
esac
`
	p := counts(t, count, counted)
	p.Write(".abl/config.yaml", strings.NewReplacer("node", "sh", "count.mjs", "count.sh", "required", "off").Replace(p.Read(".abl/config.yaml")))
	const fresh = "rm -rf /tmp/exchange; "
	script(p, builds(write("count.sh", hostile)), call("verifier", 0, write("run.sh", counted, "0755"),
		must(0, fresh+"abl-cmd app links 2>&1; find /tmp/exchange -type f; find /tmp/exchange ! -type f ! -type d"),
		must(0, fresh+"abl-cmd app huge 2>/tmp/err | wc -c; cat /tmp/err; ls /tmp/exchange"),
		must(0, fresh+"abl-cmd app many 2>/tmp/err; cat /tmp/err | tail -1; ls /tmp/exchange | wc -l"),
		must(124, fresh+"timeout 2 abl-cmd app spin"),
		must(0, "(timeout 2 abl-cmd app spin & timeout 2 abl-cmd app spin & wait); abl-cmd app escape | od -c | head -1"),
		must(125, "abl-cmd app escape"),
		must(0, "abl-cmd app stay; a=$(abl-cmd app alive); sleep 0.5; test \"$a\" = \"$(abl-cmd app alive)\" && echo DAEMON-GONE"),
		must(0, "abl-cmd restart; abl-cmd app alive"),
		must(0, fresh+"abl-cmd app gone; abl-cmd app alive"),
		must(125, fresh+"mkdir -p /tmp/exchange; ln -s /etc/hosts /tmp/exchange/l; abl-cmd app cat l"),
		must(125, "ABL_EXCHANGE=$PWD abl-cmd app cat run.sh"),
		must(125, fresh+"ln -s /workspace/tests /tmp/exchange; abl-cmd app cat run.sh"),
		must(0, fresh+"mkdir -p /tmp/exchange; echo SECOND > /tmp/exchange/x; abl-cmd app cat x; mkfifo /tmp/open; (sleep 50 >/tmp/open 2>/dev/null &); abl-cmd app alive </tmp/open"),
		report()))
	p.Must(0, "phase", "1")
	out := printed(p, "p1-verify-1.1")
	wants(t, "links", out, `"pass" is left out: it is a link`, `"pipe" is left out: it is a FIFO`, "/tmp/exchange/fine\n")
	wants(t, "huge output", out, "4194304\n", "beyond 4194304 bytes", `"big" is left out`, "\nsmall\n")
	wants(t, "many files", out, "480 more are left out\n1000\n")
	wants(t, "the rest", out, "033", "the program itself ended with exit code 125", "DAEMON-GONE\n", "none\n", "which holds your work", "SECOND\n")
	lacks(t, "the Verifier's call", out, "root:x:", "case $1 in")
	noLeftovers(p)
}

// What speaks no HTTP is tested over TCP, and what passes is counted.
func TestTCP(t *testing.T) {
	const upper = `import net from 'node:net';
net.createServer(conn => conn.on('error', () => {}).on('data', data => conn.write(String(data).toUpperCase()))).listen(4000, '0.0.0.0');
`
	const suite = `#!/bin/bash
echo 1..1
got=$(timeout 5 bash -c 'host=${ABL_APP_URL#tcp://}; exec 3<>"/dev/tcp/${host%:*}/${host#*:}" && echo "GET /x HTTP/1.1" >&3 && head -1 <&3')
if [ "$got" = "GET /X HTTP/1.1" ]; then echo 'ok 1 - P1.C1'; else echo 'not ok 1 - P1.C1'; fi
`
	p := newProject(t, "app: {kind: tcp, command: node upper.mjs, port: 4000}\nverify: {evidence: required}\n",
		builds(write("upper.mjs", upper)), call("verifier", 0, write("run.sh", suite, "0755"), run("echo at=$ABL_APP_URL"), report()))
	p.Write(".abl/specs/phase1.md", strings.Replace(oneSpec, "GET / → 200 with the text ok", "send a line → the line in capitals", 1))
	p.Must(0, "phase", "1")
	wants(t, "the Verifier's call", printed(p, "p1-verify-1.1"), "at=tcp://app:4000\n")
	r := audited(p, 1, 1)
	if c := r.Contracts[0]; c.Is != found.Verified || !c.Unread || len(c.Under) > 0 {
		t.Errorf("%s is %s: %s (ok under %v)", c.ID, c.Is, c.Why, c.Under)
	}
	wants(t, "the report", p.Must(0, "report", "1").Stdout, "bytes were counted", "not checkable by abl")
	noLeftovers(p)
}
