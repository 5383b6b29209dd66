package report

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCode(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "–",
		" \n ":                 "–",
		"GET /a → 200":         "<code>GET /a → 200</code>",
		"a | b":                "<code>a &#124; b</code>",
		"1.5 and www.e.org":    "<code>1.5 and www&#46;e.org</code>",
		"**b** `c` [l](u)":     "<code>&#42;&#42;b&#42;&#42; &#96;c&#96; &#91;l&#93;(u)</code>",
		"</code><script>":      "<code>&#60;/code&#62;&#60;script&#62;</code>",
		"http://e @all #1 $x$": "<code>http&#58;//e &#64;all &#35;1 &#36;x&#36;</code>",
		"&lt;\\":               "<code>&#38;lt;&#92;</code>",
		"two\nlines\x1b[2J":    "<code>two lines&#92;x1b&#91;2J</code>",
	} {
		if got := code(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	if got := code(strings.Repeat("é", 5000)); !strings.HasSuffix(got, "é … &#91;cut&#93;</code>") || len(got) > maxLine+40 {
		t.Errorf("code of a long text: got %d bytes, …%s, want at most %d with a cut end",
			len(got), got[len(got)-40:], maxLine+40)
	}
}

var reference = regexp.MustCompile(`&#\d+;`)

// FuzzCode checks that Markdown shows any text literally.
func FuzzCode(f *testing.F) {
	f.Add(hostile)
	f.Add("a|b\\|c`d``e")
	f.Add("W.w.www.x\r\n\tй")
	f.Fuzz(func(t *testing.T, s string) {
		got := code(s)
		if line(s) == "" {
			return
		}
		inner := strings.TrimSuffix(strings.TrimPrefix(got, "<code>"), "</code>")
		if len(inner) != len(got)-len("<code></code>") {
			t.Fatalf("code(%q): got %q, want a code element", s, got)
		}
		if plain := reference.ReplaceAllString(inner, ""); strings.ContainsAny(plain, steering+"\n\r") {
			t.Fatalf("code(%q): got %q, want no Markdown characters in it", s, inner)
		}
		if back := html.UnescapeString(inner); back != line(s) {
			t.Fatalf("text of code(%q): got %q, want %q", s, back, line(s))
		}
	})
}

// FuzzFormats puts a text into every field that an agent can set. JUnit stays well-formed, with the
// same structure. A page has only its own tags and rows, and on a terminal no line begins like one of
// abl.
func FuzzFormats(f *testing.F) {
	f.Add(hostile)
	f.Add("]]><failure/>\x0b￾")
	f.Fuzz(func(t *testing.T, s string) {
		if line(s) == "" {
			return // a field without content is omitted
		}
		tame, wild := Run{Phase: 1}, Run{Phase: 1}
		for r, text := range map[*Run]string{&tame: "x", &wild: s} {
			bad := contract(1, "P1.C1", text, "fail", "replay", "failed")
			bad.Input, bad.Observed, bad.Why, bad.Witness = text, text, text, text
			record := sample("fail", "refuted", bad)
			record.Strength = text
			record.Notes, record.Missing, record.Calls[0].Model, record.Replays[0].Gone = []string{text}, []string{text}, text, text
			r.Record, r.Ended = &record, &Ended{5, text}
		}
		doc, err := JUnit(wild)
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range structure(doc) {
			t.Fatalf("structure of JUnit: got %s, want no error in\n%s", wrong, doc)
		}
		if diff := cmp.Diff(tagsOf(rendered(t, pageWith("x", 2))), tagsOf(rendered(t, pageWith(line(s), 2)))); diff != "" {
			t.Fatalf("tags of a page (-want +got)\n%s", diff)
		}
		if a, b := rowsOf(Markdown(tame)), rowsOf(Markdown(wild)); a != b {
			t.Fatalf("rows of Markdown: got %d, want %d", b, a)
		}
		var out bytes.Buffer
		if err := Text(&out, wild); err != nil {
			t.Fatal(err)
		}
		heads := 0
		for l := range strings.Lines(out.String()) {
			if l != "\n" && !strings.HasPrefix(l, "  ") {
				heads++
			}
		}
		if strings.ContainsFunc(out.String(), steers) || heads != 5 {
			t.Fatalf("text: got %d lines at the margin, want 5 and no control characters in\n%s", heads, out.String())
		}
	})
}

// rowsOf counts the lines and the cells of a page.
func rowsOf(page string) int { return strings.Count(page, "\n")*1000 + strings.Count(page, "|") }
