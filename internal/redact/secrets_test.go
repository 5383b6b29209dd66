package redact

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamed(t *testing.T) {
	for name, want := range map[string]bool{
		"GEMINI_API_KEY": true, "OPENAI_API_KEY": true, "ANTHROPIC_AUTH_TOKEN": true, "GITHUB_TOKEN": true, "GH_TOKEN": true,
		"AWS_SECRET_ACCESS_KEY": true, "AWS_ACCESS_KEY_ID": true, "DB_PASSWORD": true, "PGPASSWORD": true, "db.password": true,
		"npm_config__authToken": false, "SENTRY_DSN": true, "STRIPE_KEY": true, "APIKEY": true, "MYAPIKEY": true, "DB_PWD": true,
		"PWD": false, "OLDPWD": false, "SSH_AUTH_SOCK": false, "KEYBOARD": false, "KEY_FILE": false, "TOKEN_URL": false,
		"PATH": false, "HOME": false, "SRC_DIR": false, "ABL_LOOP_CALL_TIMEOUT": false, "XAUTHORITY": false, "MONKEY": false, "": false, "_": false,
	} {
		if got := Named(name); got != want {
			t.Errorf("Named(%q): got %t, want %t", name, got, want)
		}
	}
}

func TestLooks(t *testing.T) {
	for value, want := range map[string]bool{
		"sk-live-1234": true, "ghp_01234567": true, "AIzaSyA-b-c-": true, "eyJhbGciOi..": true, "npm_install": false, "-----BEGIN PRIVATE KEY-----\nabc": true,
		"Zx81kLmQ9pR3vT77": true, "0123456789abcdef0123456789abcdef": true, "aB3$aB3$aB3$aB3$": true,
		"gemini-2.5-pro-preview-05-06": false, "shortener": false, "http://127.0.0.1:8080/V1aaaaaaaaa": false, "/opt/Keys/a1/bbbbbbbbbb": false,
		"My App number 2 of 17": false, "America/Argentina/Buenos_Aires": false, "2026-11-21T10:00:00Z": false, "en_US.UTF-8": false, "": false,
	} {
		if got := Looks(value); got != want {
			t.Errorf("Looks(%q): got %t, want %t", value, got, want)
		}
	}
}

func TestSecrets(t *testing.T) {
	vars := map[string]string{
		"GEMINI_API_KEY": "sesame-open", "PIN_TOKEN": "1234", "DB_PASSWORD": "Password", "WORD_KEY": "swordfish", "OLD_PASSWORD": "20261121", "LONG_PASSWORD": "correcthorsebattery", "EMPTY_KEY": "", "NAME": "shortener",
		"DB": "postgres://me:passw%30rd@db/x", "HOOK": "https://h.example/x?token=abcdefgh1&page=1", "SHORT": "redis://:pw@r",
		"THING": "Zx81kLmQ9pR3vT77", "BROKEN": "http://[::1", "PLAIN": "http://me@h.example/",
	}
	all, short := Secrets(vars, true)
	if diff := cmp.Diff([]string{"passw0rd", "sesame-open", "abcdefgh1", "correcthorsebattery", "Zx81kLmQ9pR3vT77", "swordfish"}, all); diff != "" {
		t.Errorf("secrets (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"DB_PASSWORD", "OLD_PASSWORD", "PIN_TOKEN", "SHORT"}, short); diff != "" {
		t.Errorf("names of short secrets (-want +got)\n%s", diff)
	}
	if named, _ := Secrets(vars, false); slices.Contains(named, "Zx81kLmQ9pR3vT77") || len(named) != 5 {
		t.Errorf("secrets by name: got %q, want 5 without the value of THING", named)
	}
}

func TestRandom(t *testing.T) {
	for value, want := range map[string]bool{
		"zx81klmq9pr3vt77": true, "Zx81kLmQ9pR3vT77": true, "sk-live-12345678": true, "0123456789abcdef0123456789abcdef": true,
		"sk-live-1234": false, "correcthorsebattery": false, "gemini-2.5-pro-preview-05-06": false, "gpt4turbopreview2024": false,
		"http://127.0.0.1:8080/v1": false, "20261121100000123": false, "2026-11-21T10:00:00Z": false, "": false,
	} {
		if got := Random(value); got != want {
			t.Errorf("Random(%q): got %t, want %t", value, got, want)
		}
	}
}

// Secrets of .env are rejected, other settings such as a port are not.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"PORT", "3000", false},
		{"DEBUG", "1", false},
		{"NODE_ENV", "development", false},
		{"APP_URL", "http://localhost:3000/start", false},
		{"POSTGRES_PASSWORD", "postgres", false},
		{"DATABASE_URL", "postgres://app:postgres@db:5432/app", false},
		{"DATABASE_URL", "postgres://app:k7%23Gq2mZp@db.example.com/app", true},
		{"POSTGRES_PASSWORD", "k7-Gq2!mZp", true},
		{"SESSION_SECRET", "9f86d081884c7d659a2feaa0c55ad015", true},
		{"GEMINI_API_KEY", "sesame", true},
		{"ANYTHING", "AIzaSyD-0123456789abcdefghijklmnop", true},
		{"API_KEY", "", true}, // which nothing holds
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			if got := Holds(c.name, c.value); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
