// Package model asks the APIs of models through their makers' own SDKs, one
// question at a time: what was sent and what came back are kept as they were on
// the wire, an answer that is not whole says so, and trouble that passes is
// waited out. No prompt, agent or budget may be in it.
package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"abl/internal/gateway/meter"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/tokens"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"google.golang.org/genai"
)

// Finish says whether an answer is whole.
type Finish string

// The ways an answer ends. Whatever a provider says that is not known to mean a
// whole answer is one of the others.
const (
	Whole   Finish = "whole"
	Cut     Finish = "cut"     // it reached a limit, or nothing says that it is whole
	Blocked Finish = "blocked" // a filter or the model itself refused
)

// Answer is what a model said.
type Answer struct {
	Text   string
	Finish Finish
	Reason string // the provider's own word for how it ended
	Model  string // as the provider names it, else as it was asked
	Usage  tokens.Count
	Body   []byte // of the response, as received
	Tries  int
	Lost   bool // the provider may charge for a try of which it did not report the usage
}

// Names of the models that are known.
const (
	Gemini = "gemini-2.5-pro"
	GPT    = "gpt-5"
)

// provider is what differs between APIs.
type provider struct {
	keyVar, baseVar string
	api             meter.API
	// ask makes one try, once being the same for each try of a question. It returns the
	// SDK's error, or what the SDK understood of an answer.
	ask func(ctx context.Context, c *Client, by *http.Client, prompt, once string) (Answer, error)
}

// providers are those whose APIs models are asked through.
var providers = map[string]provider{Google: gemini, OpenAI: openAI}

// KeyVar is the variable that holds the key for a provider, and BaseVar the one
// that gives another address.
func KeyVar(provider string) string { return providers[provider].keyVar }

// BaseVar is the variable that gives another address for a provider.
func BaseVar(provider string) string { return providers[provider].baseVar }

// Config is how a model is asked.
type Config struct {
	Provider  string // one of Providers
	Key       string
	Base      string // another address than the provider's own
	Transport http.RoundTripper
	Retries   int           // further tries after trouble that passes
	Patience  time.Duration // for one try
	// Wait is told why the next try has to wait and how long, and does so.
	Wait func(ctx context.Context, why error, d time.Duration) error
}

// Client asks one model.
type Client struct {
	Config
	name string
	p    provider
}

// New is a client of the model of that name.
func New(name string, c Config) (_ *Client, err error) {
	p := providers[c.Provider]
	if c.Base, err = address(c.Base, p.baseVar); err != nil {
		return nil, err
	}
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	return &Client{c, name, p}, nil
}

// Name is the model's name.
func (c *Client) Name() string { return c.name }

// address checks the address that a person gives instead of the provider's own.
// The key goes there, so it has to be encrypted or stay on this machine.
func address(raw, name string) (string, error) {
	if raw == "" {
		return "", nil
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%s must be a plain address such as https://host/path, without user, query or fragment", name)
	case u.Scheme == "http" && u.Hostname() != "localhost" && !net.ParseIP(u.Hostname()).IsLoopback():
		return "", fmt.Errorf("%s would send the key to %s unencrypted: use https", name, u.Hostname())
	}
	return u.String(), nil
}

// Names of the providers, whose APIs models are asked through.
const (
	Google = "gemini"
	OpenAI = "openai"
)

// Catalog says whose API each model is asked through.
type Catalog map[string]string

// Known are the models that can always be asked.
func Known() Catalog { return Catalog{Gemini: Google, GPT: OpenAI} }

// Names are the models in a catalog, sorted.
func (c Catalog) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Providers are those that there are, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// With adds the models that a file lists: a line has a name and its provider, and
// one that begins with # says nothing.
func (c Catalog) With(file string, data []byte) (Catalog, error) {
	all := maps.Clone(c)
	no := 0
	for line := range strings.Lines(string(data)) {
		no++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		_, known := providers[words[len(words)-1]]
		if len(words) != 2 || !known || !modelName.MatchString(words[0]) {
			return nil, fmt.Errorf("%s line %d: want the name of a model and its provider (%s), such as gemini-3-pro gemini", file, no, strings.Join(Providers(), " or "))
		}
		all[words[0]] = words[1]
	}
	return all, nil
}

var gemini = provider{keyVar: "GEMINI_API_KEY", baseVar: "GOOGLE_GEMINI_BASE_URL", api: meter.Gemini, ask: askGemini}

// askGemini always gives a base address: the SDK would look into the environment.
func askGemini(ctx context.Context, c *Client, by *http.Client, prompt, _ string) (a Answer, err error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: c.Key, Backend: genai.BackendGeminiAPI, HTTPClient: by,
		HTTPOptions: genai.HTTPOptions{BaseURL: cmp.Or(c.Base, "https://generativelanguage.googleapis.com/")},
	})
	if err != nil {
		return a, err
	}
	resp, err := client.Models.GenerateContent(ctx, c.name, genai.Text(prompt), nil)
	if err != nil {
		return a, err
	}
	a.Model = resp.ModelVersion
	switch {
	case resp.PromptFeedback != nil && resp.PromptFeedback.BlockReason != "":
		a.Reason = string(resp.PromptFeedback.BlockReason)
		return a, nil
	case len(resp.Candidates) == 0:
		return a, errors.New("there is no candidate in it")
	}
	said := resp.Candidates[0]
	a.Reason = string(said.FinishReason)
	if said.Content == nil {
		return a, nil
	}
	for _, part := range said.Content.Parts {
		if part != nil && !part.Thought {
			a.Text += part.Text
		}
	}
	return a, nil
}

var openAI = provider{keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", api: meter.Chat, ask: askOpenAI}

// askOpenAI makes the service alone, not the SDK's client, which takes more from
// the environment than anybody asked for. Further tries are ours.
func askOpenAI(ctx context.Context, c *Client, by *http.Client, prompt, once string) (a Answer, err error) {
	chat := openai.NewChatCompletionService(
		option.WithAPIKey(c.Key), option.WithBaseURL(openAIBase(c.Base)), option.WithHTTPClient(by),
		option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", once),
	)
	resp, err := chat.New(ctx, openai.ChatCompletionNewParams{
		Model:    c.name,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	})
	if err != nil {
		return a, err
	}
	if len(resp.Choices) == 0 {
		return a, errors.New("there is no choice in it")
	}
	said := resp.Choices[0]
	a.Text, a.Model, a.Reason = said.Message.Content, resp.Model, said.FinishReason
	if said.Message.Refusal != "" {
		a.Reason = "refusal"
	}
	return a, nil
}

// openAIBase ends in /v1/ unless the person gave a path of their own.
func openAIBase(base string) string {
	if base == "" {
		return "https://api.openai.com/v1/"
	}
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("v1").String() + "/"
	}
	return strings.TrimRight(base, "/") + "/"
}

// Error is why there is no answer.
type Error struct {
	Kind  outcome.Outcome // whose trouble it is; what is transient may pass
	What  string
	After time.Duration // that the provider asks to wait; negative when it does not say
}

// Error says what happened.
func (e *Error) Error() string { return e.What }

// Ask puts one question, and tells sent what is about to be sent, before it is. What it
// returns is whole, or says that it is not; an
// error is an *Error unless ctx has ended or a file could not be written.
func (c *Client) Ask(ctx context.Context, prompt string, sent func(body []byte) error) (Answer, error) {
	// It is the same for each try, so that a provider can tell that it is one question.
	once := rand.Text()
	var before Answer // all earlier tries
	for try := 1; ; try++ {
		a, err := c.try(ctx, prompt, once, sent)
		a.Tries, a.Usage, a.Lost = try, before.Usage.Add(a.Usage), before.Lost || a.Lost
		before = a
		e, told := errors.AsType[*Error](err)
		switch {
		case err != nil && ctx.Err() != nil:
			return a, context.Cause(ctx)
		case !told:
			return a, err
		}
		pause, worth := c.pause(e, try)
		if !worth {
			if try > 1 {
				e.What += fmt.Sprintf(" (after %d tries)", try)
			}
			return a, e
		}
		if err := c.Wait(ctx, e, pause); err != nil {
			return a, err
		}
	}
}

// try asks once.
func (c *Client) try(ctx context.Context, prompt, once string, sent func([]byte) error) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, fmt.Errorf("no answer within %s", c.Patience))
	defer cancel()
	t := &tape{next: c.Transport, sent: sent}
	a, err := c.p.ask(ctx, c, t.client(), prompt, once)
	read := meter.New(c.p.api)
	_, _ = read.Write(t.body)
	// The SDKs make a zero of what is not told.
	a.Body, a.Model, a.Usage = t.body, cmp.Or(a.Model, c.name), read.Usage()
	a.Lost = t.asked && (t.status == 0 || t.status == http.StatusOK || meter.GaveUp(t.status)) && !a.Usage.Known()
	switch {
	case t.stop != nil:
		return a, t.stop
	case t.status == 0:
		return a, c.unavailable("did not answer", cmp.Or(context.Cause(ctx), err))
	case t.status != http.StatusOK:
		return a, c.judge(t)
	case err != nil:
		return a, c.unavailable("sent what is no answer", err)
	case meter.OfFinish(a.Reason) == outcome.Filtered:
		a.Finish = Blocked
		return a, &Error{Kind: outcome.Filtered, What: fmt.Sprintf("the answer was held back by %s (%s)", c.name, a.Reason)}
	case strings.EqualFold(a.Reason, "stop"):
		a.Finish = Whole
	default:
		a.Finish = Cut
	}
	return a, nil
}

func (c *Client) unavailable(what string, err error) *Error {
	return &Error{Kind: outcome.Unavailable, What: fmt.Sprintf("%s %s: %v", c.name, what, err), After: unsaid}
}

// judge says what a status means. The key is taken out of the provider's words before
// their end is cut off, which might leave a part of one that nobody knows again.
func (c *Client) judge(t *tape) error {
	const most = 400
	told := meter.Of(t.status, t.header, t.body, time.Now())
	hide, _ := redact.New(c.Key)
	words := hide.String(strings.Join(strings.Fields(told.Words), " "))
	words = strings.ToValidUTF8(words[:min(len(words), most)], "")
	e := &Error{Kind: told.Class, What: fmt.Sprintf("%s answered with status %d: %s", c.name, t.status, words), After: told.Retry}
	if told.Retry == 0 && t.header.Get("Retry-After") != "0" {
		e.After = unsaid
	}
	return e
}

// unsaid is the wait that a provider does not ask for.
const unsaid = -1

// pause is how long to wait before the next try, if one is worth it: a used up quota
// is not back in minutes.
func (c *Client) pause(e *Error, try int) (pause time.Duration, worth bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	if pause = e.After; pause == unsaid {
		pause = min(time.Second<<min(try-1, 10), longest)
	}
	return pause, e.Kind.Transient() && e.Kind != outcome.Quota && try <= c.Retries && pause <= patience
}

// maxBody is the largest response that is taken.
const maxBody = 64 << 20

// tape hands requests on and keeps what went over the wire in one try.
type tape struct {
	next   http.RoundTripper
	sent   func([]byte) error
	asked  bool // the provider may have read the request
	status int
	header http.Header
	body   []byte
	stop   error // that no further try can mend
}

// RoundTrip is one exchange. The response is read to its end here, so that it is
// kept even when the SDK gives up on it.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody() // both SDKs hold the body in memory
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(body)
	if err == nil {
		err = t.sent(data)
	}
	if err != nil {
		t.stop = err
		return nil, err
	}
	resp, err := t.next.RoundTrip(r)
	dial, is := errors.AsType[*net.OpError](err)
	if t.asked = !is || dial.Op != "dial"; err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	t.status, t.header, t.body = resp.StatusCode, resp.Header, data
	if len(data) > maxBody {
		t.body = nil
		what := fmt.Sprintf("the response is larger than %d MiB, and was not read further", maxBody>>20)
		t.stop = &Error{Kind: outcome.Failed, What: what}
		return nil, t.stop
	}
	if err != nil {
		t.status = 0 // it broke off
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// client is an HTTP client that goes nowhere but where it was sent: at a
// redirection the key would go along.
func (t *tape) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
