// Package model sends single questions to the APIs of models through the SDKs of their vendors. It
// returns requests and responses as they were on the wire, reports incomplete answers, and retries
// after transient failures. It has no prompts, agents or budgets.
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

// Finish reports whether an answer is complete.
type Finish string

// The values of Finish. A finish reason that is unknown counts as Cut.
const (
	Whole   Finish = "whole"
	Cut     Finish = "cut"     // it reached a limit, or its finish reason is unknown
	Blocked Finish = "blocked" // a filter or the model itself refused
)

// Answer is the answer of a model.
type Answer struct {
	Text   string
	Finish Finish
	Reason string // the provider's finish reason
	Model  string // the provider's name of the model, else the requested one
	Usage  tokens.Count
	Body   []byte // of the response, as received
	Tries  int
	Lost   bool // the provider may charge for a try without a reported usage
}

// Names of the models that are always available.
const (
	Gemini = "gemini-2.5-pro"
	GPT    = "gpt-5"
)

// provider describes an API.
type provider struct {
	keyVar, baseVar string
	api             meter.API
	// ask makes one try. once is the same for each try of a question. It returns the SDK's error,
	// or the answer as the SDK parsed it.
	ask func(ctx context.Context, c *Client, by *http.Client, prompt, once string) (Answer, error)
}

// providers are the supported APIs by name.
var providers = map[string]provider{Google: gemini, OpenAI: openAI}

// KeyVar returns the variable for the key of a provider.
func KeyVar(provider string) string { return providers[provider].keyVar }

// BaseVar returns the variable for another address of a provider.
func BaseVar(provider string) string { return providers[provider].baseVar }

// Config configures a Client.
type Config struct {
	Provider  string // one of Providers
	Key       string
	Base      string // another address than the provider's own
	Transport http.RoundTripper
	Retries   int           // further tries after a transient failure
	Patience  time.Duration // for one try
	// Wait waits for d before the next try. why is the failure of the last one.
	Wait func(ctx context.Context, why error, d time.Duration) error
}

// Client sends questions to one model.
type Client struct {
	Config
	name string
	p    provider
}

// New returns a client of the model with that name.
func New(name string, c Config) (_ *Client, err error) {
	p := providers[c.Provider]
	if c.Base, err = address(c.Base, p.baseVar); err != nil {
		return nil, err
	}
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	return &Client{c, name, p}, nil
}

// Name returns the model's name.
func (c *Client) Name() string { return c.name }

// address checks the address that the user gives instead of the provider's own. It receives the
// key, so it must use https or be on this machine.
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

// Names of the providers.
const (
	Google = "gemini"
	OpenAI = "openai"
)

// Catalog maps the name of each model to its provider.
type Catalog map[string]string

// Known returns the models that are always available.
func Known() Catalog { return Catalog{Gemini: Google, GPT: OpenAI} }

// Names returns the sorted names of the models.
func (c Catalog) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Providers returns the sorted names of the providers.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// With returns the catalog with the models in a file. Each line has a name and its provider. Empty
// lines and lines that begin with # are ignored.
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

// askGemini always sets the base address, because the SDK would read it from the environment.
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
		return a, errors.New("it contains no candidate")
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

// askOpenAI uses the chat service and not the SDK's client, which reads variables of the
// environment. The Client does the retries.
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
		return a, errors.New("it contains no choice")
	}
	said := resp.Choices[0]
	a.Text, a.Model, a.Reason = said.Message.Content, resp.Model, said.FinishReason
	if said.Message.Refusal != "" {
		a.Reason = "refusal"
	}
	return a, nil
}

// openAIBase returns the base address. It ends in /v1/ unless the user gave another path.
func openAIBase(base string) string {
	if base == "" {
		return "https://api.openai.com/v1/"
	}
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("v1").String() + "/"
	}
	return strings.TrimRight(base, "/") + "/"
}

// Error is the failure of a question.
type Error struct {
	Kind  outcome.Outcome // a transient failure may pass
	What  string
	After time.Duration // how long the provider asks to wait; unsaid if it does not
}

// Error returns what happened.
func (e *Error) Error() string { return e.What }

// Ask sends one question and returns the answer, which may be incomplete. It calls sent with the
// body before each try. Its error is an *Error unless ctx has ended or sent failed.
func (c *Client) Ask(ctx context.Context, prompt string, sent func(body []byte) error) (Answer, error) {
	// The same for each try, so that the provider recognizes a repeated question.
	once := rand.Text()
	var before Answer // all earlier tries
	for try := 1; ; try++ {
		a, err := c.try(ctx, prompt, once, sent)
		a.Tries, a.Usage, a.Lost = try, before.Usage.Add(a.Usage), before.Lost || a.Lost
		before = a
		e, is := errors.AsType[*Error](err)
		switch {
		case err != nil && ctx.Err() != nil:
			return a, context.Cause(ctx)
		case !is:
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

// try sends the question once.
func (c *Client) try(ctx context.Context, prompt, once string, sent func([]byte) error) (Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.Patience, fmt.Errorf("no answer within %s", c.Patience))
	defer cancel()
	t := &tape{next: c.Transport, sent: sent}
	a, err := c.p.ask(ctx, c, t.client(), prompt, once)
	read := meter.New(c.p.api)
	_, _ = read.Write(t.body)
	// The SDKs return zero for a missing count, so read the counts from the body.
	a.Body, a.Model, a.Usage = t.body, cmp.Or(a.Model, c.name), read.Usage()
	a.Lost = t.asked && (t.status == 0 || t.status == http.StatusOK || meter.GaveUp(t.status)) && !a.Usage.Known()
	switch {
	case t.stop != nil:
		return a, t.stop
	case t.status == 0:
		return a, c.unavailable("did not respond", cmp.Or(context.Cause(ctx), err))
	case t.status != http.StatusOK:
		return a, c.judge(t)
	case err != nil:
		return a, c.unavailable("sent an invalid answer", err)
	case meter.OfFinish(a.Reason) == outcome.Filtered:
		a.Finish = Blocked
		return a, &Error{Kind: outcome.Filtered, What: fmt.Sprintf("the answer was blocked by %s (%s)", c.name, a.Reason)}
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

// judge returns the error of a response status. It removes the key before it cuts the provider's
// message, because a part of the key would not be recognized.
func (c *Client) judge(t *tape) error {
	const most = 400
	trouble := meter.Of(t.status, t.header, t.body, time.Now())
	hide, _ := redact.New(c.Key)
	words := hide.String(strings.Join(strings.Fields(trouble.Words), " "))
	words = strings.ToValidUTF8(words[:min(len(words), most)], "")
	e := &Error{Kind: trouble.Class, What: fmt.Sprintf("%s responded with status %d: %s", c.name, t.status, words), After: trouble.Retry}
	if trouble.Retry == 0 && t.header.Get("Retry-After") != "0" {
		e.After = unsaid
	}
	return e
}

// unsaid is the value of Error.After without a requested wait.
const unsaid = -1

// pause returns how long to wait before the next try. worth is false if another try is useless: a
// quota is not renewed within minutes.
func (c *Client) pause(e *Error, try int) (pause time.Duration, worth bool) {
	const longest, patience = 30 * time.Second, 5 * time.Minute
	if pause = e.After; pause == unsaid {
		pause = min(time.Second<<min(try-1, 10), longest)
	}
	return pause, e.Kind.Transient() && e.Kind != outcome.Quota && try <= c.Retries && pause <= patience
}

// maxBody is the largest accepted response, in bytes.
const maxBody = 64 << 20

// tape forwards the requests of one try and records the response.
type tape struct {
	next   http.RoundTripper
	sent   func([]byte) error
	asked  bool // the provider may have read the request
	status int
	header http.Header
	body   []byte
	stop   error // for which another try does not help
}

// RoundTrip makes one exchange. It reads the response to its end, so that the record is complete
// even if the SDK stops reading.
func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody() // both SDKs keep the body in memory
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
		t.status = 0 // the response is incomplete
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// client returns an HTTP client that does not follow redirects, which would receive the key.
func (t *tape) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
