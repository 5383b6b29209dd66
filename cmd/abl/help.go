package main

import "abl/cmd/internal/cli"

// topics returns the topics of `abl help TOPIC`.
func topics() []cli.Topic {
	return []cli.Topic{{Name: "environment", Usage: "the environment variables that abl reads", Text: environmentText}}
}

const environmentText = `Each setting has a variable: ABL_ and its name in upper case, with _ for each dot.
ABL_LOOP_CALL_TIMEOUT=10m sets loop.call_timeout. Empty variables are ignored. version and
keys with a name of yours, such as agents.NAME.login, have no variable. Variables in the
environment override those in .env. abl config prints each value and its source.

Keys and addresses of model providers. For a role, those in .env override those in the
environment. For abl check, abl spec draft and abl code-commit it is the reverse.

  GEMINI_API_KEY            GOOGLE_GEMINI_BASE_URL       gemini
  ANTHROPIC_API_KEY         ANTHROPIC_BASE_URL           claude
  OPENAI_API_KEY            OPENAI_BASE_URL              codex
  COPILOT_PROVIDER_API_KEY  COPILOT_PROVIDER_BASE_URL    copilot
  ANTHROPIC_AUTH_TOKEN      ANTHROPIC_BASE_URL           claude, a gateway
  CLAUDE_CODE_OAUTH_TOKEN                                claude, a plan
  AWS_BEARER_TOKEN_BEDROCK  AWS_REGION                   claude, Amazon Bedrock
  ANTHROPIC_FOUNDRY_API_KEY ANTHROPIC_FOUNDRY_BASE_URL   claude, Azure
  AZURE_OPENAI_API_KEY      AZURE_OPENAI_BASE_URL        codex, Azure

Other variables of logins (docs/providers.md):

  ANTHROPIC_BEDROCK_MANTLE_BASE_URL    another address of Amazon Bedrock
  COPILOT_PROVIDER_BEARER_TOKEN        copilot: a token instead of the key
  COPILOT_PROVIDER_TYPE                copilot: openai, azure or anthropic

Variables of single flags:

  ABL_CA_CERT               --ca-cert: a file with CA certificates to trust
  ABL_OFFLINE               --offline: build no image that needs a network
  ABL_IMAGES                an archive of abl images save: abl loads it when an image is missing
  ABL_TRUST                 --trust: accept the repository's settings for one run
  CODE_COMMIT_PROTOCOL      --protocol of abl code-commit

The engine, as for the docker command:

  DOCKER_HOST, DOCKER_CONTEXT, DOCKER_CONFIG
  DOCKER_CERT_PATH, DOCKER_TLS_VERIFY, DOCKER_BUILDKIT

The network, while images are built and for the gateway:

  HTTP_PROXY, HTTPS_PROXY, NO_PROXY
  SSL_CERT_FILE, NODE_EXTRA_CA_CERTS    more CAs to trust
  GOPROXY, NPM_CONFIG_REGISTRY          mirrors for downloads

The terminal and CI:

  NO_COLOR                  set: print no colour
  TERM                      empty or dumb: plain lines, no status line
  GITHUB_ACTIONS            set: fold the lines of each call
  GITHUB_STEP_SUMMARY       a file to which abl phase and abl run append their report
  BROWSER                   the browser that abl report --open starts

Other:

  XDG_STATE_HOME            abl/ in this folder records trusted settings and used images
                            (default: ~/.local/state)
  ABL_DEBUG                 1: print the stack of an internal error
`

// habits returns words that users of other tools type, each with abl's command.
func habits() map[string]string {
	return map[string]string{
		"lint": "abl spec lint", "validate": "abl spec lint", "draft": "abl spec draft FILE", "contracts": "abl spec list",
		"resume":   "abl phase N or abl run: both resume where they stopped",
		"continue": "abl phase N or abl run: both resume where they stopped",
		"retry":    "abl phase N --again", "verify": "abl phase N; with --again it runs the tests of a passed phase again",
		"start": "abl run", "build": "abl run, or abl images build for images", "up": "abl run",
		"exec":  "abl shell builder|verifier",
		"run N": "abl phase N", "ls": "abl status", "ps": "abl status", "list": "abl status or abl spec list",
		"down": "abl stop", "kill": "abl stop", "cancel": "abl stop", "rm": "abl clean", "prune": "abl clean --orphans",
		"diff": "abl open N --diff", "show": "abl report N", "view": "abl report N --open",
		"push": "abl publish, then git push --atomic origin abl/phase1 'refs/abl/*'", "fetch": "git fetch, then abl pull",
		"login": "an API key in .env; abl doctor checks it", "auth": "an API key in .env; abl doctor checks it",
		"set": "abl config set KEY VALUE", "settings": "abl config", "update": "docs/install.md",
		"-v": "--version, or abl logs -f to see what an agent does", "-V": "--version",
		"--verbose": "abl logs -f to see what an agent does", "--debug": "ABL_DEBUG=1",
		"--resume": "the command without it: it resumes where it stopped",
	}
}
