package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"abl/internal/ledger"
)

var (
	shots = flag.String("shots", "", "keep pictures of the page in this folder")
	other = flag.String("page", "", "look at this page instead of the sample")
)

// attack is text of an agent that tries to run code in a page.
const attack = "</textarea></script></style></pre></table><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>" +
	"<a href=\"javascript:alert(4)\">javascript:alert(5)</a> \" autofocus onfocus=alert(6) x=' ` {{.}} ]]> &lt;script&gt; \u2028\u2029\u202e\u200b\x1b[2J\x00 <!-- <meta http-equiv=refresh content=0>"

// TestPageInBrowser checks pages in a real browser.
func TestPageInBrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser takes seconds")
	}
	c := browse(t)
	page := rendered(t, pageWith("Some words of an agent.", 3))
	if *other != "" {
		data, err := os.ReadFile(*other)
		if err != nil {
			t.Fatal(err)
		}
		page = data
	}
	on := func(name string, do func(c *chromium)) {
		t.Run(name, func(t *testing.T) {
			of := *c
			of.T = t
			do(&of)
			of.T, *c = c.T, of
		})
	}
	on("mouse and keys", func(c *chromium) { useEvidence(c, page) })
	on("figures", checkFigures)
	on("hostile", func(c *chromium) { survive(c) })
	for _, how := range []string{"light", "dark"} {
		on("axe in the "+how, func(c *chromium) { c.accessible(how, page) })
		on("axe in the "+how+" with trouble", func(c *chromium) { c.accessible(how, rendered(c.T, trouble())) })
	}
	on("phone", func(c *chromium) {
		c.look(390, "light")
		c.open(page)
		c.eval("document.querySelectorAll('section').forEach(e => e.style.contentVisibility = 'visible'); document.querySelectorAll('details').forEach(d => d.open = true)", nil)
		c.truth("the page is as wide as the phone", "document.documentElement.scrollWidth <= 390")
		c.shoot("phone", true)
		c.click("button.mark")
		c.truth("its evidence too", "document.querySelector('[popover]:popover-open').getBoundingClientRect().width <= 390")
		c.shoot("phone-evidence", false)
	})
	on("print", func(c *chromium) {
		c.look(800, "print")
		c.open(page)
		c.truth("details are open on paper", "[...document.querySelectorAll('details pre, details p')].every(e => e.checkVisibility({contentVisibilityAuto: true}) && e.getBoundingClientRect().height > 0)")
		c.truth("evidence is printed", "[...document.querySelectorAll('[popover]')].every(e => e.getBoundingClientRect().height > 0)")
		c.shoot("print", true)
	})
	on("fifty iterations", func(c *chromium) {
		c.look(1200, "light")
		page := rendered(c.T, large(strings.Repeat("All of this was said. ", 200)))
		begun := time.Now()
		c.open(page)
		c.quiet()
		c.Logf("%d bytes opened after %v", len(page), time.Since(begun))
		c.shoot("fifty", false)
	})
}

// useEvidence opens the evidence for a contract and the actions of a call, by mouse and by keys.
func useEvidence(c *chromium, page []byte) {
	c.look(1200, "light")
	c.open(page)
	c.shoot("light", true)
	open := "document.querySelector('[popover]:popover-open')"
	c.click("button.mark")
	c.truth("a click opens it", open+" && "+open+".textContent.includes('replays against the app')")
	c.truth("it is named", open+".getAttribute('aria-labelledby') && document.getElementById("+open+".getAttribute('aria-labelledby')).textContent.trim()")
	c.shoot("evidence", false)
	c.click("[popover]:popover-open .close")
	c.truth("a click closes it", open+" === null")
	c.eval("document.querySelector('button.mark').focus()", nil)
	for _, key := range []string{"Enter", " "} {
		c.press(key)
		c.truth(key+" opens it", open+" !== null && "+open+".contains(document.activeElement)")
		c.press("Escape")
		c.truth("Escape closes it, and the focus is where it was", open+" === null && document.activeElement.matches('button.mark')")
	}
	for _, part := range []string{"#contracts", "#changes", "#work"} {
		c.eval(fmt.Sprintf("document.querySelector('%s details > summary').focus()", part), nil)
		c.press("Enter")
		c.truth("Enter opens "+part, fmt.Sprintf("document.querySelector('%s details').open", part))
	}
	c.eval("document.querySelectorAll('details').forEach(d => d.open = true); scrollTo(0, 0)", nil)
	c.shoot("open", true)
	c.quiet()
}

// checkFigures compares the numbers of the tables with the ledger.
func checkFigures(c *chromium) {
	p := pageWith("words", 3)
	c.open(rendered(c.T, p))
	var shown [][][]string
	c.eval("[...document.querySelectorAll('table.plot')].map(t => [...t.rows].slice(1).map(r => [...r.cells].map(d => d.textContent.trim())))", &shown)
	var want [][][]string
	for _, by := range []ledger.By{ledger.ByRole, ledger.ByModel, ledger.ByIter} {
		var rows [][]string
		row := func(key string, s ledger.Sum) {
			rows = append(rows, []string{key, "", s.Total.String(), s.Input.String(), s.Cached.String(), s.Share.String(), s.Candidates.String(), s.Thoughts.String(), s.Cost.String()})
		}
		for _, g := range p.Spent.By[by] {
			row(strings.TrimPrefix(g.Key, "2/"), g.Sum)
		}
		if len(rows) > 1 {
			row("all", p.Spent.All)
		}
		want = append(want, rows)
	}
	got, _ := json.Marshal(shown)
	plain := strings.NewReplacer(`","`, `","`, ",", "")
	ledger, _ := json.Marshal(want)
	if a, b := plain.Replace(string(got)), plain.Replace(string(ledger)); a != b {
		c.Errorf("the page shows\n%s\nthe ledger has\n%s", got, ledger)
	}
	c.truth("the figures above are those", fmt.Sprintf("document.querySelector('.figures').textContent.includes('%s')", figure(p.Spent.All.Total)))
}

// survive fails unless texts of agents are only text.
func survive(c *chromium) {
	shape := "JSON.stringify([...document.querySelectorAll('*')].map(e => [e.tagName, [...e.attributes].map(a => a.name)]))"
	var tame, wild string
	c.open(rendered(c.T, pageWith("x", 2)))
	c.eval(shape, &tame)
	c.open(rendered(c.T, pageWith(attack, 2)))
	c.eval(shape, &wild)
	if tame != wild {
		c.Errorf("the page has other elements than that of a tame agent:\n%s\n%s", wild, tame)
	}
	c.eval("document.querySelectorAll('details').forEach(d => d.open = true)", nil)
	c.click("button.mark")
	c.truth("there is no script", "document.scripts.length === 0 && document.querySelectorAll('img, iframe, object, embed, form, [onerror], [onload], [onfocus], a:not([href^=\"#\"])').length === 0")
	c.truth("it is shown as text", "document.body.textContent.includes('<script>alert(1)</script>')")
	c.truth("no character steers", "!/[\\u2028\\u2029\\u202e\\u200b\\x1b\\x00]/.test(document.documentElement.outerHTML)")
	c.quiet()
}

// accessible checks the page with axe-core, with all parts closed, and with all open.
func (c *chromium) accessible(how string, page []byte) {
	if c.axe == "" {
		c.Skip("axe-core could not be fetched")
	}
	c.look(1200, how)
	c.open(page)
	c.shoot(strings.ReplaceAll(strings.SplitN(c.Name(), "/", 2)[1], " ", "-"), true)
	c.eval(c.axe, nil)
	for _, state := range []string{"document.querySelectorAll('section, .box').forEach(e => e.style.contentVisibility = 'visible')",
		"document.querySelectorAll('details').forEach(d => d.open = true)", "document.querySelector('button.mark').click()"} {
		c.eval(state, nil)
		var wrong []string
		c.eval("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.help + ' ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + n.failureSummary).join(' | ')))", &wrong)
		for _, w := range wrong {
			c.Errorf("%s: %s", state, w)
		}
	}
}
